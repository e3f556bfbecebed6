-- Returns the buckets of a breaker by name: every used bucket if the name has keys, otherwise one. Refuses unknown limits, limits without a breaker and other tenants' limits.
create or replace function trunkline_internal.breaker_buckets(p_name text)
returns table (bucket bigint, limit_id integer)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit trunkline_internal.limits;
begin
  perform trunkline_internal.check_limit_scope(
    p_name => p_name, p_bucket => trunkline_internal.bucket_of(p_name => p_name), p_job => null
  );
  select l.* into v_limit
  from trunkline_internal.limits as l
  where l.name = p_name
    or l.limit_id = (
      select n.limit_id
      from trunkline_internal.bucket_names as n
      where n.bucket = trunkline_internal.bucket_of(p_name => p_name)
      order by n.limit_id desc
      limit 1
    )
  order by l.name <> p_name
  limit 1;
  if v_limit.limit_id is null then
    perform trunkline_internal.refuse(
      p_name => 'unknown_limit',
      p_detail => jsonb_build_object('limit', p_name) || trunkline_internal.known_limits(p_with_breaker => true)
    );
  end if;
  if v_limit.breaker_failures is null then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object(
        'argument', 'p_name', 'must_be', 'a limit with a breaker, or one of its keys; set_limit with breaker_failures makes one'
      )
    );
  end if;
  if v_limit.name = p_name and strpos(p_name, '{') > 0 then
    return query
    select distinct n.bucket, n.limit_id
    from trunkline_internal.bucket_names as n
    where n.limit_id = v_limit.limit_id
    order by n.bucket;
  else
    return query select trunkline_internal.bucket_of(p_name => p_name), v_limit.limit_id;
  end if;
end;
$$;
comment on function trunkline_internal.breaker_buckets(text) is 'Returns the buckets of a breaker by name: every used bucket if the name has keys, otherwise one. Refuses unknown limits, limits without a breaker and other tenants'' limits.';
