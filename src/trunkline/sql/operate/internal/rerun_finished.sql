-- Runs those of these jobs that have finished again as new jobs, oldest first; returns the new ids, and refusals by their names with how many.
-- none -> ready. Each in a subtransaction, because enqueue may refuse one of them. Locks rows of finished in id order.
create or replace function trunkline_internal.rerun_finished(p_jobs uuid[], p_scope text, out made uuid[], out refused jsonb)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
as $$
declare
  v_answer trunkline.enqueued;
  v_detail text;
  v_name text;
  v_old trunkline_internal.finished;
  v_since timestamptz;
begin
  made := '{}';
  refused := '{}';
  select trunkline_internal.id_time(p_id => i.id) - interval '1 minute'
  into v_since
  from unnest(p_jobs) as i (id)
  order by i.id
  limit 1;
  for v_old in
    select f.*
    from trunkline_internal.finished as f
    where f.job_id = any(p_jobs) and f.finished_at >= v_since and (p_scope is null or f.tenant = p_scope)
    order by f.job_id
    for update of f
  loop
    begin
      v_answer := trunkline_internal.rerun(p_old => v_old);
      made := made || v_answer.job_id;
    exception
      when others then
        -- Refusals of the engine are outcomes; everything else ends the call.
        if sqlstate not like 'TL%' then
          raise;
        end if;
        get stacked diagnostics v_detail = pg_exception_detail;
        v_name := v_detail::jsonb ->> 'code';
        refused := jsonb_set(refused, array[v_name], to_jsonb(coalesce((refused ->> v_name)::integer, 0) + 1));
    end;
  end loop;
end;
$$;
comment on function trunkline_internal.rerun_finished(uuid[], text) is 'Runs those of these jobs that have finished again as new jobs, oldest first; returns the new ids, and refusals by their names with how many.';
