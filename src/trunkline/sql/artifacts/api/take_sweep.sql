-- Gives the sweep of the store to a worker for five minutes; returns no row if another worker has it or it is not due.
-- A sweep goes through the files of the store and through the artifacts, some at a time, and begins again an hour after its end.
create or replace function trunkline.take_sweep(p_worker text)
returns setof trunkline.sweep_turn
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := trunkline.clock();
begin
  if p_worker is null or p_worker = '' or length(p_worker) > 200 then
    perform trunkline_internal.refuse(p_name => 'worker_required', p_detail => '{}');
  end if;
  if trunkline.tenant_scope() is not null then
    return;
  end if;
  return query
  update trunkline_internal.store_sweep as s
  set leased_until = v_now + interval '5 minutes', worker = p_worker
  from (
    select t.only_row
    from trunkline_internal.store_sweep as t
    where (t.leased_until is null or t.leased_until < v_now or t.worker = p_worker) and (t.next_at is null or t.next_at <= v_now)
    for update of t skip locked
  ) as t
  where s.only_row = t.only_row
  returning s.installation, s.file_cursor, v_now - trunkline_internal.setting(p_name => 'orphan_age')::interval;
end;
$$;
comment on function trunkline.take_sweep(text) is 'Gives the sweep of the store to a worker for five minutes; returns no row if another worker has it or it is not due.';
