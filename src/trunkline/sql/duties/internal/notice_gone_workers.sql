-- Marks workers that missed too many heartbeats as gone and returns all gone workers; deletes old rows.
-- Workers that are gone, stopped or deleted receive no notifications.
create or replace function trunkline_internal.notice_gone_workers(p_now timestamptz)
returns text[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_gone text[];
  v_misses integer := trunkline_internal.setting(p_name => 'pulse_misses')::integer;
begin
  update trunkline_internal.workers as w
  set state = 'gone'
  where w.ctid = any(array(
    select k.ctid
    from trunkline_internal.workers as k
    where k.state in ('active', 'draining') and k.seen_at < p_now - v_misses * k.pulse_interval
    for update of k skip locked
  ));
  delete from trunkline_internal.workers as w
  where w.state in ('gone', 'stopped')
    and w.seen_at < p_now - interval '1 day'
    and not exists (select from trunkline_internal.running as r where r.worker = w.worker);
  delete from trunkline_internal.sleepers as s
  where s.ctid = any(array(
    select k.ctid
    from trunkline_internal.sleepers as k
    where not exists (
      select from trunkline_internal.workers as w where w.worker = k.worker and w.state in ('active', 'draining')
    )
    for update of k skip locked
  ));
  select array_agg(w.worker) into v_gone from trunkline_internal.workers as w where w.state = 'gone';
  return v_gone;
end;
$$;
comment on function trunkline_internal.notice_gone_workers(timestamptz) is 'Marks workers that missed too many heartbeats as gone and returns all gone workers; deletes old rows.';
