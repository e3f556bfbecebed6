-- Configuration: known keys, checked on write and in force at once; the engine stores those for which it has a setting.
-- requires: base
-- source: 7

create or replace view clinical.configuration_keys as
select *
from (
  values
    ('worker.heartbeat_interval_seconds', 'seconds', '30', 1, 86400, 'heartbeat_interval', 'How often a worker sends heartbeats.'),
    (
      'worker.timeout_seconds', 'seconds', '300', 3, 2592000, null,
      'A job without a heartbeat for this long is lost; three heartbeats or more.'
    ),
    (
      'worker.reclaim_jitter_max_seconds', 'seconds', '60', 1, 86400, 'reclaim_jitter',
      'A lost job is due again after a random time up to this.'
    ),
    (
      'worker.claims_enabled', 'boolean', 'true', null, null, null,
      'Whether jobs of this profile are claimed. The maintenance mode switches it; you can also switch it during maintenance.'
    ),
    (
      'queue.backpressure_delay_seconds', 'seconds', '30', 1, 86400, 'backpressure_delay',
      'Delay that a worker passes to reschedule_job when an endpoint has no capacity.'
    ),
    (
      'queue.v3_enqueue_enabled', 'boolean', 'true', null, null, null,
      'Whether enqueue_job_v3 and submit_upload accept work; a roll-back switches it off.'
    ),
    ('queue.max_deferrals', 'number', '100', 1, 1000000, null, 'A job deferred more often than this without progress is an alert.'),
    (
      'queue.max_deferral_age_hours', 'number', '24', 1, 8760, null,
      'A job deferred for longer than this without progress is an alert.'
    ),
    ('maintenance.mode', 'boolean', 'false', null, null, null, 'Maintenance: switching it on stops claims, switching it off starts them.'),
    ('maintenance.stop_uploads', 'boolean', 'false', null, null, null, 'Whether the maintenance mode stops uploads as well.'),
    ('pipeline.pass2_enabled', 'boolean', 'true', null, null, null, 'Whether the second AI pass is part of the pipeline.'),
    ('pipeline.pass3_enabled', 'boolean', 'true', null, null, null, 'Whether the third AI pass is part of the pipeline.')
) as k (config_key, kind, default_value, minimum, maximum, engine_setting, description);
comment on view clinical.configuration_keys is 'All keys, the kind and range of their values, and the engine''s setting that stores a key.';

create table if not exists clinical.configuration (
  config_key text primary key,
  config_value text not null,
  updated_at timestamptz not null default clock_timestamp(),
  updated_by text not null default session_user
);
comment on table clinical.configuration is 'Configured values; a key without a row has its default.';
alter table clinical.configuration enable row level security;
alter table clinical.configuration force row level security;
drop policy if exists service_only on clinical.configuration;
create policy service_only on clinical.configuration
to trunkline_owner, trunkline_producer, trunkline_worker, trunkline_operator, trunkline_reader using (true) with check (true);

create or replace function clinical.configured(p_key text)
returns text
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    (select extract(epoch from s.value::interval)::bigint::text from trunkline.settings as s where s.name = k.engine_setting),
    (select c.config_value from clinical.configuration as c where c.config_key = k.config_key),
    k.default_value
  )
  from clinical.configuration_keys as k
  where k.config_key = p_key
$$;
comment on function clinical.configured(text) is 'Returns the value of a key that is in force: the written value or the default.';

create or replace function clinical.check_configuration(p_key text, p_value text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fits boolean;
  v_key record;
  v_rule text;
begin
  select k.* into v_key from clinical.configuration_keys as k where k.config_key = p_key;
  if not found then
    perform clinical.refuse(
      p_code => 'invalid_configuration', p_message => format('unknown configuration key %L', p_key),
      p_detail => jsonb_build_object('key', p_key, 'known', (
        select jsonb_agg(k.config_key order by k.config_key) from clinical.configuration_keys as k
      ))
    );
  end if;
  v_fits := case
    when v_key.kind = 'boolean' then p_value in ('true', 'false')
    -- Checks for digits first, because a cast of other text would fail.
    when p_value ~ '^[0-9]{1,9}$' then p_value::integer between v_key.minimum and v_key.maximum
    else false
  end;
  if v_fits and p_key in ('worker.timeout_seconds', 'worker.heartbeat_interval_seconds') then
    v_rule := 'worker.timeout_seconds >= 3 x worker.heartbeat_interval_seconds';
    v_fits := case p_key
      when 'worker.timeout_seconds' then p_value::integer >= 3 * clinical.configured(p_key => 'worker.heartbeat_interval_seconds')::integer
      else 3 * p_value::integer <= clinical.configured(p_key => 'worker.timeout_seconds')::integer
    end;
  end if;
  if not coalesce(v_fits, false) then
    perform clinical.refuse(
      p_code => 'invalid_configuration', p_message => format('%L does not fit configuration key %s', p_value, p_key),
      p_detail => jsonb_strip_nulls(jsonb_build_object(
        'key', p_key, 'value', p_value, 'kind', v_key.kind, 'minimum', v_key.minimum, 'maximum', v_key.maximum, 'rule', v_rule
      ))
    );
  end if;
end;
$$;
comment on function clinical.check_configuration(text, text) is 'Refuses an unknown key, and a value of the wrong kind or out of range.';

create or replace function clinical.apply_configuration(p_key text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_setting text := (select k.engine_setting from clinical.configuration_keys as k where k.config_key = p_key);
  v_stored text := (select c.config_value from clinical.configuration as c where c.config_key = p_key);
begin
  if v_setting is not null then
    perform trunkline.set_setting(p_name => v_setting, p_value => v_stored || ' seconds');
  end if;
  case p_key
    when 'worker.timeout_seconds' then
      perform clinical.register_job_types();
    when 'worker.claims_enabled' then
      if clinical.configured(p_key => p_key) = 'true' then
        perform trunkline.resume_queue(p_queue => q.queue)
        from trunkline.queues as q
        where q.queue = any (clinical.queues()) and q.paused;
      else
        perform trunkline.pause_queue(p_queue => q.queue, p_reason => 'worker.claims_enabled is false')
        from unnest(clinical.queues()) as q (queue);
      end if;
    when 'maintenance.mode' then
      -- Switch claims to the opposite value, unless they already have it.
      if clinical.configured(p_key => 'worker.claims_enabled') = clinical.configured(p_key => p_key) then
        perform clinical.set_configuration(
          p_key => 'worker.claims_enabled',
          p_value => case clinical.configured(p_key => p_key) when 'true' then 'false' else 'true' end
        );
      end if;
    else
      null;
  end case;
end;
$$;
comment on function clinical.apply_configuration(text) is 'Applies a written key: in the engine''s settings, in the policy of the tasks, or by pausing the queues.';

create or replace function clinical.queues()
returns text[]
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  -- The second queue has jobs that were running at an import, so that no other worker claims them meanwhile.
  select array['clinical', 'clinical-import']
$$;
comment on function clinical.queues() is 'Returns the queues of this profile.';

create or replace function clinical.set_configuration(p_key text, p_value text)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_value is null then
    delete from clinical.configuration as c where c.config_key = p_key;
  else
    perform clinical.check_configuration(p_key => p_key, p_value => p_value);
    insert into clinical.configuration as c (config_key, config_value, updated_at, updated_by)
    values (p_key, p_value, trunkline.clock(), session_user)
    on conflict (config_key) do update
    set config_value = excluded.config_value, updated_at = excluded.updated_at, updated_by = excluded.updated_by;
  end if;
  perform clinical.apply_configuration(p_key => p_key);
  return clinical.configured(p_key => p_key);
end;
$$;
comment on function clinical.set_configuration(text, text) is 'Writes a key and applies it at once; null restores its default. Returns the value in force.';

create or replace view clinical.system_configuration with (security_barrier = true) as
select
  c.config_key,
  clinical.configured(p_key => c.config_key) as config_value,
  'system'::text as config_type,
  k.description,
  false as is_sensitive,
  c.updated_at
from clinical.configuration as c
join clinical.configuration_keys as k on k.config_key = c.config_key;
comment on view clinical.system_configuration is 'Keys with their values in force; a write checks the value and applies it at once.';

create or replace function clinical.write_configuration()
returns trigger
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if tg_op = 'DELETE' then
    perform clinical.set_configuration(p_key => old.config_key, p_value => null);
    return old;
  end if;
  if tg_op = 'UPDATE' and new.config_key is distinct from old.config_key or new.config_value is null then
    perform clinical.refuse(
      p_code => 'invalid_configuration', p_message => 'a key keeps its name and has a value',
      p_detail => jsonb_build_object('key', new.config_key, 'value', new.config_value)
    );
  end if;
  perform clinical.set_configuration(p_key => new.config_key, p_value => new.config_value);
  return new;
end;
$$;
comment on function clinical.write_configuration() is 'Checks and applies each write to the view system_configuration.';

drop trigger if exists write_configuration on clinical.system_configuration;
create trigger write_configuration
instead of insert or update or delete on clinical.system_configuration
for each row execute function clinical.write_configuration();

-- Insert only if missing: an installation keeps what an operator wrote.
insert into clinical.configuration (config_key, config_value)
select k.config_key, k.default_value
from clinical.configuration_keys as k
on conflict (config_key) do nothing;
