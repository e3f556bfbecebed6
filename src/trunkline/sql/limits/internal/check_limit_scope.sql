-- Refuses limits outside the session's tenant: another tenant's, and shared limits without a running job that uses them.
-- A limit is the tenant's own if a limit with {tenant} produces its name for this tenant, and every other limit with keys
-- that could produce the name does so for this tenant as well. Otherwise tenant budget, whose {tenant}/{model} is budget/b
-- for a model b, could pause budget/{tenant} of tenant b. The names that tasks use count like limits.
-- A shared limit, such as a provider's, is allowed only for p_job: a running job of this tenant that was enqueued under
-- exactly this name. The caller has read p_job within the tenant's scope. The template and its keys prove nothing, because
-- the caller supplies them: budget/b{tenant} is budget/ba for tenant a.
create or replace function trunkline_internal.check_limit_scope(
  p_name text,
  p_bucket bigint,
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
    coalesce(p_bucket = any((p_job).bucket_ids), false)
    or (
      select
        coalesce(bool_and(o.for_tenant = p_name), false) and bool_or(o.for_tenant = p_name and o.is_limit)
      from (
        select
          t.is_limit,
          case when strpos(t.name, '{tenant}') > 0 then coalesce(
            trunkline_internal.fill_limit_name(p_template => t.name, p_payload => k.keys, p_tenant => v_scope), ''
          ) else '' end as for_tenant
        from (
          select l.name, true as is_limit from trunkline_internal.limits as l where strpos(l.name, '{') > 0
          union all
          select n.name, false from trunkline_internal.tasks as s cross join lateral unnest(s.limits) as n (name)
        ) as t
        cross join lateral trunkline_internal.split_limit_name(p_template => t.name, p_name => p_name) as k (keys)
        where k.keys is not null
      ) as o
    )
  ) then
    return;
  end if;
  perform trunkline_internal.refuse(p_name => 'tenant_denied', p_detail => jsonb_build_object('limit', p_name));
end;
$$;
comment on function trunkline_internal.check_limit_scope(text, bigint, trunkline_internal.running) is 'Refuses limits outside the session''s tenant: another tenant''s, and shared limits without a running job that uses them.';
