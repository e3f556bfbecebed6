-- Removes expired flags of followers and emitted output past retention, at most p_limit flags and attempts; returns how many. The work of the duty sweep_live.
-- The output of an attempt is kept while the job is live, and for emitted_retention after its end. Skips locked rows.
create or replace function trunkline_internal.duty_sweep_live(p_limit integer default 10000)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_done integer;
  v_keep_from timestamptz;
  v_now timestamptz := trunkline.clock();
  v_total integer;
begin
  v_keep_from := v_now - trunkline_internal.setting(p_name => 'emitted_retention')::interval;
  delete from trunkline_internal.followed as f
  where f.followed_id = any(array(
    select o.followed_id
    from trunkline_internal.followed as o
    where o.until <= v_now
    order by o.until
    limit p_limit
    for update of o skip locked
  ));
  get diagnostics v_total = row_count;
  -- The first chunk of each attempt stands for all of its chunks.
  delete from trunkline_internal.emitted_chunks as c
  using (
    select o.job_id, o.attempt
    from trunkline_internal.emitted_chunks as o
    where o.number = 1
      and o.emitted_at <= v_keep_from
      and not exists (select from trunkline_internal.waiting as w where w.job_id = o.job_id)
      and not exists (select from trunkline_internal.running as r where r.job_id = o.job_id)
      and not exists (select from trunkline_internal.dead as d where d.job_id = o.job_id and d.died_at > v_keep_from)
      and not exists (
        select from trunkline_internal.finished as f where f.job_id = o.job_id and f.finished_at > v_keep_from
      )
    order by o.emitted_at
    limit p_limit
    for update of o skip locked
  ) as o
  where c.job_id = o.job_id and c.attempt = o.attempt;
  get diagnostics v_done = row_count;
  return v_total + v_done;
end;
$$;
comment on function trunkline_internal.duty_sweep_live(integer) is 'Removes expired flags of followers and emitted output past retention, at most p_limit flags and attempts; returns how many. The work of the duty sweep_live.';
