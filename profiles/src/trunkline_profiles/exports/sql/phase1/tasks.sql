-- Tasks, limits and the schedule in the engine.
-- requires: base
-- source: 2.4, 2.6, 2.11

create or replace function exports.register_tasks()
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform trunkline.register_task(
    p_task => 'export_document', p_queue => 'exports', p_max_attempts => 5, p_crash_limit => 5,
    -- A worker of ours that dies is missed by its pulse, long before the lease. The lease is for workers without one.
    p_lease => interval '15 minutes', p_hard_limit => interval '30 minutes', p_reclaim_on_worker_death => true,
    p_backoff => '{"base": 60, "factor": 2, "cap": 3600, "jitter": 0.2}', p_lost_backoff => true,
    p_audit => true, p_profile => 'exports',
    p_limits => array['fair:exports/{tenant}', 'exports-renders']
  );
  perform trunkline.register_task(
    p_task => 'cleanup_expired_exports', p_queue => 'exports-cleanup', p_max_attempts => 3,
    p_lease => interval '2 minutes', p_hard_limit => interval '1 hour', p_profile => 'exports'
  );
end;
$$;
comment on function exports.register_tasks() is 'Registers the policies of the tasks: five attempts, back-off of one minute doubling to an hour with 20 % jitter, three renders at once.';

create or replace function exports.calculate_retry_delay(p_attempt integer, p_draw double precision default null)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_delay double precision;
begin
  if p_attempt is null or p_attempt < 1 then
    perform exports.refuse(
      p_code => 'invalid_attempt', p_message => format('there is no attempt %s', coalesce(p_attempt::text, 'null')),
      p_detail => jsonb_build_object('attempt', p_attempt)
    );
  end if;
  v_delay := least(60 * power(2::double precision, least(p_attempt - 1, 30)), 3600);
  return round(least(v_delay * (0.8 + 0.4 * coalesce(p_draw, random())), 3600))::integer;
end;
$$;
comment on function exports.calculate_retry_delay(integer, double precision) is 'Returns the seconds after the failure of an attempt until the next one: 60, 120, 240 … up to 3600, each varied by up to 20 %.';

do $register$
begin
  -- Operators change these with trunkline limits set. Three renders need up to 600 MB.
  if not exists (select from trunkline.limits as l where l.name = 'exports-renders') then
    perform trunkline.set_limit(p_limit => 'exports-renders', p_parts => '{"concurrency": 3, "depth_limit": 500}');
  end if;
  if not exists (select from trunkline.limits as l where l.name = 'fair:exports/{tenant}') then
    perform trunkline.set_limit(p_limit => 'fair:exports/{tenant}', p_parts => '{"weight": 1, "share_cap": 2}');
  end if;
  if not exists (select from trunkline.limits as l where l.name = 'exports-operations/{tenant}') then
    perform trunkline.set_limit(
      p_limit => 'exports-operations/{tenant}',
      p_parts => '{"quota": 100, "quota_unit": "operations", "quota_period": "day", "quota_buffer": 1}'
    );
  end if;
  perform trunkline.set_artifact_retention(p_kind => 'export', p_retention => interval '8 days');
  perform exports.register_tasks();
  if not exists (select from trunkline.schedules as s where s.schedule = 'cleanup-expired-exports') then
    perform trunkline.set_schedule(
      p_schedule => 'cleanup-expired-exports', p_cron => '0 2 * * *', p_task => 'cleanup_expired_exports', p_time_zone => 'UTC'
    );
  end if;
end
$register$;
