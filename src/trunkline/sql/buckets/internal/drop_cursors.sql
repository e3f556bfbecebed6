-- Makes claims scan the lanes of buckets from the start again, after jobs have returned to places that may lie before the cursor.
-- The caller holds the buckets.
create or replace function trunkline_internal.drop_cursors(p_buckets bigint[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_bucket bigint;
  v_state trunkline_internal.bucket_states;
begin
  foreach v_bucket in array p_buckets loop
    select s.* into v_state from trunkline_internal.bucket_states as s where s.bucket = v_bucket order by s.revision desc limit 1;
    if v_state.place is not null then
      v_state.place := null;
      perform trunkline_internal.write_revision(p_bucket => v_bucket, p_state => v_state);
    end if;
  end loop;
end;
$$;
comment on function trunkline_internal.drop_cursors(bigint[]) is 'Makes claims scan the lanes of buckets from the start again, after jobs have returned to places that may lie before the cursor.';
