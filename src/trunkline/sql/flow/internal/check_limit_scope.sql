-- Refuses limits outside the session's tenant: another tenant's, and shared limits without a running job that uses them.
-- A limit is the tenant's own if a limit with {tenant} produces its name for this tenant. A shared limit, such as a
-- provider's, is allowed only for p_job: a running job of this tenant whose task names the limit. The caller has read
-- p_job within the tenant's scope. The template alone proves nothing, because the caller supplies it: budget/b{tenant} is
-- budget/ba for tenant a.
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
comment on function trunkline_internal.check_limit_scope(text, text, bigint, trunkline_internal.running) is 'Refuses limits outside the session''s tenant: another tenant''s, and shared limits without a running job that uses them.';
