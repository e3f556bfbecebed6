-- Refuses a transaction above READ COMMITTED: finding a job takes several statements, each of which must see current rows.
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
comment on function trunkline_internal.require_read_committed() is 'Refuses a transaction above READ COMMITTED: finding a job takes several statements, each of which must see current rows.';
