-- Gives the number after which a claim looks at buckets, where the one before it ends or is expected to, and how many it will need.
-- Buckets are a ring, by their numbers, and claims go round it one after the other, so that each is looked at again when
-- most of what it gave out has ended; from random places, half of the slots that claims met were taken. Two that begin
-- at once may get the same place: then they pass by what the other holds. Who begins while another is under way begins
-- a quarter further on than the last one came, past what that one may hold: with none to spare, half of the claims of two
-- workers met each other and had to look again.
-- The sequence has the place, in as many steps as 24 bits have; below it how many of them the last claim took, in as many
-- bits; and in ten bits how many buckets it took for a thousand jobs. To look at them in one go instead of two saves a
-- claim half a millisecond.
create or replace function trunkline_internal.begin_scan(p_limit integer, out after bigint, out buckets integer)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_steps constant bigint := 16777216::bigint;
  v_turn bigint := coalesce(pg_sequence_last_value('trunkline_internal.bucket_scans'::regclass), 0);
  v_place bigint := v_turn >> 34;
begin
  perform setval(
    'trunkline_internal.bucket_scans', ((v_place + (v_turn >> 10) % c_steps * 5 / 4) % c_steps << 34) | v_turn % (c_steps << 10)
  );
  after := (v_place - c_steps / 2) << 40;
  buckets := (p_limit * (v_turn % 1024) / 1000)::integer;
end;
$$;
comment on function trunkline_internal.begin_scan(integer) is 'Gives the number after which a claim looks at buckets, where the one before it ends or is expected to, and how many it will need.';
