-- Translates stored transaction ids after a restore into another server; returns the number of rows changed.
-- Call it before the first worker starts. `trunkline db restore` calls it. Otherwise the first worker that registers
-- translates the ids of limits, and the duty sweep_buckets those of the usage ledger. A second call changes nothing.
create or replace function trunkline.after_restore()
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  c_all constant integer := 2147483647;
begin
  perform trunkline_internal.require_read_committed();
  perform from trunkline_internal.usage_roll as r for update;
  return trunkline_internal.adopt_buckets() + trunkline_internal.adopt_usage(p_limit => c_all);
end;
$$;
comment on function trunkline.after_restore() is 'Translates stored transaction ids after a restore into another server; returns the number of rows changed.';
