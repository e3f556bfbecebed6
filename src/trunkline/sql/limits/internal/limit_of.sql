-- Returns the limit that applies to a bucket: one with exactly its name if it exists, otherwise the one the job was enqueued under.
create or replace function trunkline_internal.limit_of(p_bucket bigint, p_limit integer)
returns integer
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit integer;
begin
  select l.limit_id into v_limit from trunkline_internal.limits as l where l.bucket = p_bucket;
  return coalesce(v_limit, p_limit);
end;
$$;
comment on function trunkline_internal.limit_of(bigint, integer) is 'Returns the limit that applies to a bucket: one with exactly its name if it exists, otherwise the one the job was enqueued under.';
