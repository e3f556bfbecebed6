-- Returns at most 200 names of limits for the detail of a refusal; empty for a session that acts for one tenant.
create or replace function trunkline_internal.known_limits(p_with_breaker boolean default false)
returns jsonb
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if trunkline.tenant_scope() is not null then
    return '{}'::jsonb;
  end if;
  return jsonb_build_object('known', coalesce((
    select jsonb_agg(k.name)
    from (
      select l.name
      from trunkline_internal.limits as l
      where not p_with_breaker or l.breaker_failures is not null
      order by l.name
      limit 200
    ) as k
  ), '[]'::jsonb));
end;
$$;
comment on function trunkline_internal.known_limits(boolean) is 'Returns at most 200 names of limits for the detail of a refusal; empty for a session that acts for one tenant.';
