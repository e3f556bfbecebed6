-- Copies the recorded steps of jobs that wait, run or are dead from a partition to today, before the partition is dropped.
-- One statement reads the three tables, so a job that moves meanwhile is in exactly one of them. The share lock keeps
-- reset_step from deleting a row that is being copied; lock_timeout of the duty bounds the wait.
create or replace function trunkline_internal.rescue_steps(p_partition text, p_today date)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  execute format('lock table trunkline_internal.%I in share mode', p_partition);
  execute format(
    'insert into trunkline_internal.recorded_steps'
    ' (day, recorded_at, job_id, arguments_hash, attempt, place, kind, name, key, result)'
    ' select $1, s.recorded_at, s.job_id, s.arguments_hash, s.attempt, s.place, s.kind, s.name, s.key, s.result'
    ' from trunkline_internal.%I as s'
    ' where s.job_id in ('
    '   select w.job_id from trunkline_internal.waiting as w where w.attempt > 0'
    '   union all select r.job_id from trunkline_internal.running as r'
    '   union all select d.job_id from trunkline_internal.dead as d'
    ' ) on conflict do nothing',
    p_partition
  ) using p_today;
end;
$$;
comment on function trunkline_internal.rescue_steps(text, date) is 'Copies the recorded steps of jobs that wait, run or are dead from a partition to today, before the partition is dropped.';
