-- Refuses to change state on a held snapshot: finding a job wherever it is takes several statements, each of which must see the present.
create or replace function trunkline_internal.require_read_committed()
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    perform trunkline_internal.refuse(
      p_name => 'isolation_level',
      p_detail => jsonb_build_object('isolation', current_setting('transaction_isolation'))
    );
  end if;
end;
$$;
comment on function trunkline_internal.require_read_committed() is 'Refuses to change state on a held snapshot: finding a job wherever it is takes several statements, each of which must see the present.';
