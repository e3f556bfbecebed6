-- Keeps the candidates that fit the room of the buckets in whose lanes they wait: of each bucket, what fits from its head.
-- Small jobs do not overtake a large one in front of them, or it would never start.
create or replace function trunkline_internal.fit_heads(
  p_found trunkline_internal.candidates,
  p_left trunkline_internal.room[]
)
returns trunkline_internal.candidates
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_fit trunkline_internal.candidates;
begin
  -- If everything fits, the running sums are not needed.
  if p_found.charges is not null and not exists (
    select
    from unnest(p_found.charges) as c
    join unnest(p_left) as g on g.bucket = c.bucket
    where c.starts > g.slots or c.requests > g.requests or c.tokens > g.tokens or g.units is not null
  ) then
    return p_found;
  end if;
  select
    array_agg(f.tid), array_agg(f.job_id), array_agg(f.place), array_agg(f.sequence),
    array_agg(f.job_id) filter (where f.unique_key is not null),
    min(f.payload_day), max(f.payload_day)
  into
    v_fit.tids, v_fit.jobs, v_fit.places, v_fit.sequences,
    v_fit.keyed,
    v_fit.first_day, v_fit.last_day
  from (
    select
      f.tid, f.place, f.sequence, w.job_id, w.unique_key, w.payload_day, w.lane,
      g.slots, g.requests, g.tokens, g.units, g.low_units, g.low_below,
      row_number() over before as taken,
      sum(w.cost_requests) over before as requests_taken,
      sum(w.cost_tokens) over before as tokens_taken,
      sum(trunkline_internal.amount_of(
        p_unit => g.quota_unit, p_requests => w.cost_requests, p_tokens => w.cost_tokens, p_units => w.cost_units
      )) over before as units_taken
    from unnest(p_found.tids, p_found.places, p_found.sequences) as f (tid, place, sequence)
    join trunkline_internal.waiting as w on w.ctid = f.tid
    join unnest(p_left) as g on g.bucket = w.bucket
    window before as (partition by w.bucket order by f.place, f.sequence rows unbounded preceding)
  ) as f
  where f.taken <= coalesce(f.slots, f.taken)
    and (f.requests is null or f.requests_taken <= f.requests)
    and (f.tokens is null or f.tokens_taken <= f.tokens)
    and (f.units is null or f.units_taken <= case when f.lane < f.low_below then f.low_units else f.units end);
  v_fit.others := 0;
  return v_fit;
end;
$$;
comment on function trunkline_internal.fit_heads(trunkline_internal.candidates, trunkline_internal.room[]) is 'Keeps the candidates that fit the room of the buckets in whose lanes they wait: of each bucket, what fits from its head.';
