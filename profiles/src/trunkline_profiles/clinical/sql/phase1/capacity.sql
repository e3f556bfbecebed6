-- Capacity of endpoints for calls in addition to those charged by a job's claim; permits are grants of the engine.
-- requires: base, limits
-- source: 8

create or replace function clinical.known_endpoint(p_provider_name text, p_api_endpoint text)
returns boolean
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select from clinical.api_endpoints as e where e.provider_name = p_provider_name and e.api_endpoint = p_api_endpoint
  )
$$;
comment on function clinical.known_endpoint(text, text) is 'Returns whether there is a row for a provider and an endpoint.';

create or replace function clinical.acquire_api_capacity(
  p_provider_name text,
  p_api_endpoint text,
  p_estimated_tokens integer default 1000,
  p_job_id uuid default null,
  p_attempt integer default null
)
returns table (granted boolean, permit_id uuid, expires_at timestamptz, reason text, free_at timestamptz)
language plpgsql
volatile
security definer
rows 1
set search_path = pg_catalog, pg_temp
as $$
begin
  if not clinical.known_endpoint(p_provider_name => p_provider_name, p_api_endpoint => p_api_endpoint) then
    perform clinical.refuse(
      p_code => 'unknown_endpoint', p_message => format('no limits for provider %L and endpoint %L', p_provider_name, p_api_endpoint),
      p_detail => jsonb_build_object('provider_name', p_provider_name, 'api_endpoint', p_api_endpoint)
    );
  end if;
  return query
  select g.granted, g.grant_id, g.expires_at, g.reason, nullif(g.free_at, 'infinity')
  from trunkline.acquire(
    p_limit => p_provider_name || '/' || p_api_endpoint,
    p_cost => jsonb_build_object('tokens', coalesce(p_estimated_tokens, 1000)),
    p_job => p_job_id, p_attempt => p_attempt, p_ttl => interval '300 seconds'
  ) as g;
end;
$$;
comment on function clinical.acquire_api_capacity(text, text, integer, uuid, integer) is 'Requests capacity for one call and its tokens: returns a permit that expires by itself, or a refusal with the reason and the time to retry.';

create or replace function clinical.release_api_capacity(
  p_provider_name text,
  p_api_endpoint text,
  p_estimated_tokens integer default 1000,
  p_actual_tokens integer default null,
  p_grant uuid default null
)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if not clinical.known_endpoint(p_provider_name => p_provider_name, p_api_endpoint => p_api_endpoint) then
    raise warning 'no limits for provider % and endpoint %: nothing was released', p_provider_name, p_api_endpoint;
    return false;
  end if;
  if p_grant is null then
    raise warning 'a release without the permit changes nothing: the permit expires by itself (provider %, endpoint %, estimate %)',
      p_provider_name, p_api_endpoint, p_estimated_tokens;
    return false;
  end if;
  return trunkline.settle(
    p_grant => p_grant,
    p_actual => case when p_actual_tokens is not null then jsonb_build_object('tokens', greatest(p_actual_tokens, 0)) end
  ) = 'settled';
end;
$$;
comment on function clinical.release_api_capacity(text, text, integer, integer, uuid) is 'Releases a permit and adjusts its charged tokens to the actual number; true once, a second call changes nothing.';
