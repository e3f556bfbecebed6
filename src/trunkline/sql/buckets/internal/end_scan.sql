-- Notes the last bucket that a claim took something of, and how many it looked at for how many jobs, for those that come after it: see begin_scan.
create or replace function trunkline_internal.end_scan(p_begin bigint, p_last bigint, p_buckets integer, p_jobs integer)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_steps constant bigint := 16777216::bigint;
  v_begin bigint := (p_begin >> 40) + c_steps / 2;
  v_end bigint := ((p_last >> 40) + c_steps / 2 + 1) % c_steps;
  v_turn bigint := coalesce(pg_sequence_last_value('trunkline_internal.bucket_scans'::regclass), 0);
  v_place bigint := v_turn >> 34;
begin
  -- Where nobody has begun since, the next begins at the very end of this one.
  if v_place = (v_begin + (v_turn >> 10) % c_steps * 5 / 4) % c_steps then
    v_place := v_end;
  end if;
  perform setval(
    'trunkline_internal.bucket_scans',
    (v_place << 34) | ((v_end - v_begin + c_steps) % c_steps << 10) | least(1000 * p_buckets / p_jobs + 1, 1023)
  );
end;
$$;
comment on function trunkline_internal.end_scan(bigint, bigint, integer, integer) is 'Notes the last bucket that a claim took something of, and how many it looked at for how many jobs, for those that come after it: see begin_scan.';
