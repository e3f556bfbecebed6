-- Raises the refusal that request_fault or cost_fault returned; does nothing for null.
create or replace function trunkline_internal.refuse_fault(p_fault jsonb)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_fault is not null then
    perform trunkline_internal.refuse(
      p_name => coalesce(p_fault ->> 'refusal', 'invalid_argument'), p_detail => p_fault - 'refusal'
    );
  end if;
end;
$$;
comment on function trunkline_internal.refuse_fault(jsonb) is 'Raises the refusal that request_fault or cost_fault returned; does nothing for null.';
