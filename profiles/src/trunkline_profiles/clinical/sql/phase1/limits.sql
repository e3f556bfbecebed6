-- Limits of providers: the view api_rate_limits over the limits of the engine, with the initial rows.
-- requires: base, configuration
-- source: 6

create table if not exists clinical.api_endpoints (
  id uuid primary key default gen_random_uuid(),
  provider_name text not null check (provider_name ~ '^[A-Za-z0-9_.:-]{1,90}$'),
  api_endpoint text not null check (api_endpoint ~ '^[A-Za-z0-9_.:/-]{1,90}$'),
  limit_name text not null generated always as (provider_name || '/' || api_endpoint) stored,
  created_at timestamptz not null default clock_timestamp(),
  constraint api_rate_limits_provider_endpoint unique (provider_name, api_endpoint),
  unique (limit_name)
);
comment on table clinical.api_endpoints is 'Endpoints of providers; the engine''s limit of the same name stores capacity and use.';

-- Limits themselves are in the engine's tables, where row security is forced, too.
alter table clinical.api_endpoints enable row level security;
alter table clinical.api_endpoints force row level security;
drop policy if exists api_rate_limits_service_role_only on clinical.api_endpoints;
create policy api_rate_limits_service_role_only on clinical.api_endpoints
to trunkline_owner, trunkline_producer, trunkline_worker, trunkline_operator using (true) with check (true);

create or replace view clinical.api_rate_limits with (security_barrier = true) as
select
  e.id, e.provider_name, e.api_endpoint,
  l.requests_per_minute, l.requests_per_hour, l.tokens_per_minute, l.tokens_per_hour,
  l.concurrency as concurrent_requests,
  l.backpressure_threshold::numeric(3, 2) as backpressure_threshold,
  extract(epoch from l.backpressure_delay)::integer as backpressure_delay_seconds,
  l.depth_limit as queue_depth_limit,
  l.status,
  l.requests_of_minute as current_requests_minute,
  l.requests_of_hour as current_requests_hour,
  l.tokens_of_minute as current_tokens_minute,
  l.tokens_of_hour as current_tokens_hour,
  l.in_use as active_requests,
  -- The windows slide, so each began this long ago at any time.
  trunkline.clock() - interval '1 minute' as minute_reset_at,
  trunkline.clock() - interval '1 hour' as hour_reset_at,
  l.refused_at as last_rate_limit_hit,
  l.refused as rate_limit_violations,
  e.created_at,
  l.updated_at,
  l.depth_refuses as queue_depth_refuses
from clinical.api_endpoints as e
join trunkline.limits as l on l.name = e.limit_name;
comment on view clinical.api_rate_limits is 'Capacity of providers and its current use, as sums of sliding windows; write to this view to change limits.';

alter view clinical.api_rate_limits alter column requests_per_minute set default 60;
alter view clinical.api_rate_limits alter column concurrent_requests set default 10;
alter view clinical.api_rate_limits alter column backpressure_threshold set default 0.80;
alter view clinical.api_rate_limits alter column backpressure_delay_seconds set default 5;
alter view clinical.api_rate_limits alter column queue_depth_limit set default 1000;
alter view clinical.api_rate_limits alter column status set default 'active';
alter view clinical.api_rate_limits alter column queue_depth_refuses set default true;

create or replace function clinical.write_rate_limit()
returns trigger
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if tg_op = 'DELETE' or new.requests_per_minute is null
    or tg_op = 'UPDATE' and (new.provider_name, new.api_endpoint) is distinct from (old.provider_name, old.api_endpoint)
  then
    perform clinical.refuse(
      p_code => 'invalid_limit',
      p_message => case tg_op
        when 'DELETE' then 'an endpoint is not deleted: set its status to disabled'
        else 'requests_per_minute is not null, and an endpoint keeps its name'
      end,
      p_detail => jsonb_build_object(
        'provider_name', coalesce(new.provider_name, old.provider_name), 'api_endpoint', coalesce(new.api_endpoint, old.api_endpoint)
      )
    );
  end if;
  if tg_op = 'INSERT' then
    insert into clinical.api_endpoints (id, provider_name, api_endpoint, created_at)
    values (coalesce(new.id, gen_random_uuid()), new.provider_name, new.api_endpoint, trunkline.clock())
    returning id, created_at into new.id, new.created_at;
  end if;
  perform trunkline.set_limit(
    p_limit => new.provider_name || '/' || new.api_endpoint,
    p_parts => jsonb_build_object(
      'requests_per_minute', new.requests_per_minute, 'requests_per_hour', new.requests_per_hour,
      'tokens_per_minute', new.tokens_per_minute, 'tokens_per_hour', new.tokens_per_hour,
      'concurrency', new.concurrent_requests, 'backpressure_threshold', new.backpressure_threshold,
      'backpressure_delay', new.backpressure_delay_seconds || ' seconds', 'depth_limit', new.queue_depth_limit,
      'depth_refuses', coalesce(new.queue_depth_refuses, true)
    ),
    p_status => new.status
  );
  return new;
end;
$$;
comment on function clinical.write_rate_limit() is 'Applies writes to the view api_rate_limits as limits of the engine, which checks them.';

drop trigger if exists write_rate_limit on clinical.api_rate_limits;
create trigger write_rate_limit
instead of insert or update or delete on clinical.api_rate_limits
for each row execute function clinical.write_rate_limit();

-- Insert only if missing: an installation keeps what an operator set.
do $seed$
declare
  v_seed record;
begin
  for v_seed in
    select s.*
    from (
      values
        ('openai', 'gpt-4o-mini', 500, 200000, 50),
        ('openai', 'gpt-4-vision', 100, 20000, 20),
        ('google', 'vision-api', 1800, null, 100),
        ('anthropic', 'claude-3', 400, 100000, 25)
    ) as s (provider, endpoint, requests, tokens, concurrent)
    where not exists (
      select from clinical.api_endpoints as e where e.provider_name = s.provider and e.api_endpoint = s.endpoint
    )
  loop
    if exists (select from trunkline.limits as l where l.name = v_seed.provider || '/' || v_seed.endpoint) then
      insert into clinical.api_endpoints (provider_name, api_endpoint) values (v_seed.provider, v_seed.endpoint);
    else
      insert into clinical.api_rate_limits (provider_name, api_endpoint, requests_per_minute, tokens_per_minute, concurrent_requests)
      values (v_seed.provider, v_seed.endpoint, v_seed.requests, v_seed.tokens, v_seed.concurrent);
    end if;
  end loop;
end
$seed$;
