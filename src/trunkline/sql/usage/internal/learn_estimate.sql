-- Updates the estimate of a task for a bucket from a call: the first value sets it, later one call in a hundred moves it by a tenth.
-- Tokens and units separately. Nothing is learned from missing or zero amounts: such a call was refused or failed. Zero means
-- unknown. Sampled, so that busy tasks do not compete for one row; a row that another transaction has locked is skipped. By
-- call and not by job, because a job may make several calls.
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
    -- A second insert would wait until the first commits. Skipping it costs one sample.
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
comment on function trunkline_internal.learn_estimate(text, bigint, bigint, bigint, timestamptz) is 'Updates the estimate of a task for a bucket from a call: the first value sets it, later one call in a hundred moves it by a tenth.';
