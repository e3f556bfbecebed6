-- Writes a changed bucket state as its next revision and deletes the last one. The caller holds the bucket.
create or replace function trunkline_internal.write_revision(p_bucket bigint, p_state trunkline_internal.bucket_states)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_next trunkline_internal.bucket_states := p_state;
begin
  v_next.bucket := p_bucket;
  v_next.revision := coalesce(p_state.revision, 0) + 1;
  insert into trunkline_internal.bucket_states select v_next.*;
  delete from trunkline_internal.bucket_states as s where s.bucket = p_bucket and s.revision = p_state.revision;
end;
$$;
comment on function trunkline_internal.write_revision(bigint, trunkline_internal.bucket_states) is 'Writes a changed bucket state as its next revision and deletes the last one. The caller holds the bucket.';
