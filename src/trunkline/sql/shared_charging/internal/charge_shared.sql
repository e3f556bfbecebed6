-- Charges buckets that a claim shares with others: adds adjustments, which the next holder of the bucket adds to its state.
create or replace function trunkline_internal.charge_shared(p_charges trunkline_internal.bucket_charge[], p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into trunkline_internal.bucket_adjustments (bucket, at, requests, tokens, units, holders)
  select
    c.bucket, floor(extract(epoch from p_now))::bigint, c.requests, c.tokens, c.units,
    case when l.concurrency is not null then c.holders end
  from unnest(p_charges) as c
  join trunkline_internal.limits as l on l.limit_id = c.limit_id;
end;
$$;
comment on function trunkline_internal.charge_shared(trunkline_internal.bucket_charge[], timestamptz) is 'Charges buckets that a claim shares with others: adds adjustments, which the next holder of the bucket adds to its state.';
