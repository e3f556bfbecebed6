-- Returns the limit that applies to a name after filling in its keys; refuses missing keys, unknown limits and limits the caller may not use.
create or replace function trunkline_internal.find_limit(
  p_template text,
  p_keys jsonb,
  p_tenant text,
  p_job trunkline_internal.running,
  out name text,
  out bucket bigint,
  out limit_id integer
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit integer;
begin
  name := trunkline_internal.fill_limit_name(p_template => p_template, p_payload => p_keys, p_tenant => p_tenant);
  if name is null or octet_length(name) > 400 then
    perform trunkline_internal.refuse(
      p_name => 'limit_key_missing', p_detail => jsonb_build_object('task', (p_job).task, 'limit', p_template)
    );
  end if;
  select l.limit_id into v_limit
  from trunkline_internal.limits as l
  where l.name in (find_limit.name, p_template)
  order by l.name <> find_limit.name
  limit 1;
  bucket := trunkline_internal.bucket_of(p_name => name);
  if v_limit is null then
    -- A name as the views show it: the values of its keys are already filled in.
    select n.limit_id into v_limit
    from trunkline_internal.bucket_names as n
    where n.bucket = find_limit.bucket and n.name = find_limit.name
    order by n.limit_id desc
    limit 1;
  end if;
  perform trunkline_internal.check_limit_scope(p_name => name, p_bucket => bucket, p_job => p_job);
  limit_id := v_limit;
  if v_limit is null then
    perform trunkline_internal.refuse(
      p_name => 'unknown_limit',
      p_detail => jsonb_build_object('task', (p_job).task, 'limit', name) || trunkline_internal.known_limits()
    );
  end if;
  if not exists (
    select from trunkline_internal.bucket_names as n where n.bucket = find_limit.bucket and n.limit_id = v_limit
  ) then
    insert into trunkline_internal.bucket_names (bucket, limit_id, name, seen_at)
    values (bucket, limit_id, name, trunkline.clock());
  end if;
end;
$$;
comment on function trunkline_internal.find_limit(text, jsonb, text, trunkline_internal.running) is 'Returns the limit that applies to a name after filling in its keys; refuses missing keys, unknown limits and limits the caller may not use.';
