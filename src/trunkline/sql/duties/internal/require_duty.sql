-- Refuses the name of a duty that does not exist; the detail lists the known ones.
create or replace function trunkline_internal.require_duty(p_duty text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if not exists (select from trunkline_internal.duties as d where d.duty = p_duty) then
    perform trunkline_internal.refuse(
      p_name => 'unknown_duty',
      p_detail => jsonb_build_object(
        'duty', p_duty, 'known', (select jsonb_agg(d.duty order by d.duty) from trunkline_internal.duties as d)
      )
    );
  end if;
end;
$$;
comment on function trunkline_internal.require_duty(text) is 'Refuses the name of a duty that does not exist; the detail lists the known ones.';
