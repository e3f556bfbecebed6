-- Refuses a limit that a session which acts for one tenant may not touch: another tenant's, or one that all share.
-- Its own are those whose name a limit with {tenant} gives this tenant. A shared one, such as a provider's, it reaches
-- only for a running job of this tenant whose task names it: p_job, which the caller has read within the scope.
-- The template alone proves nothing, since the caller writes it: budget/b{tenant} is budget/ba for tenant a.
create or replace function trunkline_internal.check_limit_scope(
  p_template text,
  p_name text,
  p_gate bigint,
  p_job trunkline_internal.running
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_scope text := trunkline.tenant_scope();
begin
  if v_scope is null then
    return;
  end if;
  if v_scope <> '' and (
    coalesce(array_position((p_job).need[5:], p_gate) % 2 = 1, false)
    or exists (
      select from trunkline_internal.tasks as t where t.task = (p_job).task and p_template = any(t.limits)
    )
    or exists (
      select
      from trunkline_internal.limits as l
      where strpos(l.name, '{tenant}') > 0
        and trunkline_internal.fill_limit_name(
          p_template => l.name,
          p_payload => trunkline_internal.split_limit_name(p_template => l.name, p_name => p_name),
          p_tenant => v_scope
        ) = p_name
    )
  ) then
    return;
  end if;
  perform trunkline_internal.refuse(p_name => 'tenant_denied', p_detail => jsonb_build_object('limit', p_name));
end;
$$;
comment on function trunkline_internal.check_limit_scope(text, text, bigint, trunkline_internal.running) is 'Refuses a limit that a session which acts for one tenant may not touch: another tenant''s, or one that all share.';
