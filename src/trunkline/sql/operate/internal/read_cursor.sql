-- Returns the position that a cursor stands for; without a cursor, the position before the newest job.
create or replace function trunkline_internal.read_cursor(p_cursor text)
returns uuid
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_cursor is null then
    return 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid;
  end if;
  if p_cursor ~ '^[A-Za-z0-9_-]{22}$' then
    return encode(decode(translate(p_cursor, '-_', '+/') || '==', 'base64'), 'hex')::uuid;
  end if;
  perform trunkline_internal.refuse(
    p_name => 'invalid_argument',
    p_detail => jsonb_build_object('argument', 'p_cursor', 'must_be', 'the cursor that the page before returned, or null')
  );
  -- Not reached: the refusal ends the call.
  return null;
end;
$$;
comment on function trunkline_internal.read_cursor(text) is 'Returns the position that a cursor stands for; without a cursor, the position before the newest job.';
