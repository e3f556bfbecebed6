-- Records for later claims where a scan ended, and how many buckets it used for how many jobs: see begin_scan.
create or replace function trunkline_internal.end_scan(p_begin bigint, p_last bigint, p_buckets integer, p_jobs integer)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_most_per_thousand constant integer := 1023;
  c_steps constant bigint := 16777216::bigint;
  v_begin bigint := (p_begin >> 40) + c_steps / 2;
  v_end bigint := ((p_last >> 40) + c_steps / 2 + 1) % c_steps;
  v_length bigint := coalesce(pg_sequence_last_value('trunkline_internal.bucket_scan_length'::regclass), 0);
begin
  -- If no claim has started since, the next one starts exactly where this one ended.
  if pg_sequence_last_value('trunkline_internal.bucket_scan_cursor'::regclass) = (v_begin + v_length * 5 / 4) % c_steps then
    perform setval('trunkline_internal.bucket_scan_cursor', v_end);
  end if;
  perform
    setval('trunkline_internal.bucket_scan_length', (v_end - v_begin + c_steps) % c_steps),
    setval('trunkline_internal.bucket_scan_buckets', least(1000 * p_buckets / p_jobs + 1, c_most_per_thousand));
end;
$$;
comment on function trunkline_internal.end_scan(bigint, bigint, integer, integer) is 'Records for later claims where a scan ended, and how many buckets it used for how many jobs: see begin_scan.';
