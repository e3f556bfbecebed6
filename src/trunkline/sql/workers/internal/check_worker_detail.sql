-- Refuses a worker's detail that is too large to be stored with every pulse.
create or replace function trunkline_internal.check_worker_detail(p_detail jsonb)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if pg_column_size(p_detail) > 65536 then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_detail', 'must_be', 'at most 64 KiB', 'bytes', pg_column_size(p_detail))
    );
  end if;
end;
$$;
comment on function trunkline_internal.check_worker_detail(jsonb) is
  'Refuses a worker''s detail that is too large to be stored with every pulse.';
