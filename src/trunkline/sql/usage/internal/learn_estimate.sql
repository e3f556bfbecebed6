-- Lets the estimate of a task at a bucket follow what a call really took: what is not known yet is set by it, later one of a hundred moves it by a tenth.
-- Tokens and units each for themselves; of what nobody said, and of none, there is nothing to learn: such a call was refused
-- or failed. Zero is what is not known. Not every call, so that busy tasks do not fight over one row; one that somebody
-- holds is left alone. By call and not by job, as a job may make several: those of a task with one are its jobs.
create or replace function trunkline_internal.learn_estimate(
  p_task text,
  p_bucket bigint,
  p_tokens bigint,
  p_units bigint,
  p_now timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_first constant integer := 1953657470;
  c_often constant double precision := 0.01::double precision;
  v_actual bigint[] := array[coalesce(p_tokens, 0), coalesce(p_units, 0)]::bigint[];
  v_is_drawn boolean;
  v_old trunkline_internal.estimates;
begin
  if p_task is null or v_actual = array[0, 0]::bigint[] then
    return;
  end if;
  select e.* into v_old from trunkline_internal.estimates as e where e.task = p_task and e.bucket = p_bucket;
  if not found then
    -- A second insert would wait until the first commits. One that is skipped costs a sample.
    if not pg_try_advisory_xact_lock(c_first, hashtextextended(p_task, p_bucket)::bit(32)::integer) then
      return;
    end if;
    insert into trunkline_internal.estimates (task, bucket, tokens, units, updated_at)
    values (p_task, p_bucket, v_actual[1], v_actual[2], p_now)
    on conflict (task, bucket) do nothing;
    return;
  end if;
  v_is_drawn := trunkline_internal.draw() < c_often;
  if v_is_drawn or (v_old.tokens = 0 and v_actual[1] > 0) or (v_old.units = 0 and v_actual[2] > 0) then
    update trunkline_internal.estimates as e
    set
      tokens = trunkline_internal.moved_estimate(p_old => e.tokens, p_actual => v_actual[1], p_is_drawn => v_is_drawn),
      units = trunkline_internal.moved_estimate(p_old => e.units, p_actual => v_actual[2], p_is_drawn => v_is_drawn),
      updated_at = p_now
    where e.ctid = (
      select k.ctid from trunkline_internal.estimates as k where k.task = p_task and k.bucket = p_bucket for update skip locked
    );
  end if;
end;
$$;
comment on function trunkline_internal.learn_estimate(text, bigint, bigint, bigint, timestamptz) is 'Lets the estimate of a task at a bucket follow what a call really took: what is not known yet is set by it, later one of a hundred moves it by a tenth.';
