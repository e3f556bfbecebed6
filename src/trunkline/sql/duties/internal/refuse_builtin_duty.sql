-- Refuses to change or remove a duty that belongs to the engine.
create or replace function trunkline_internal.refuse_builtin_duty(p_duty text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if exists (select from trunkline_internal.duties as d where d.duty = p_duty and d.builtin) then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object(
        'argument', 'p_duty', 'value', p_duty,
        'must_be', 'not a built-in duty; trunkline.enable_duty switches a built-in duty on and off'
      )
    );
  end if;
end;
$$;
comment on function trunkline_internal.refuse_builtin_duty(text) is 'Refuses to change or remove a duty that belongs to the engine.';
