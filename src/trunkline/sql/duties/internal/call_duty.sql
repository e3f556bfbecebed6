-- Calls the function of a duty; returns how many rows it processed and, with p_keep_rows, the rows that it returned.
-- A function that returns a set processed as many rows as it returns. A whole number is the number of rows itself. Other
-- results, such as void, are not counted. p_limit is passed on if it is not null.
create or replace function trunkline_internal.call_duty(
  p_function text,
  p_limit integer,
  p_keep_rows boolean,
  out done integer,
  out result jsonb
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_function record;
  v_keeps boolean;
  v_name text[] := parse_ident(p_function);
begin
  select p.proretset as returns_set, p.prorettype::regtype in ('smallint', 'integer', 'bigint') as returns_number
  into strict v_function
  from pg_catalog.pg_proc as p
  where p.oid = p_function::regproc;
  v_keeps := case when v_function.returns_set then p_keep_rows else v_function.returns_number end;
  if p_limit is null then
    execute format(
      'select count(*)::integer, jsonb_agg(to_jsonb(r.item)) filter (where $1) from (select %I.%I() as item) as r',
      v_name[1], v_name[2]
    )
    into done, result
    using v_keeps;
  else
    execute format(
      'select count(*)::integer, jsonb_agg(to_jsonb(r.item)) filter (where $1) from (select %I.%I(p_limit => $2) as item) as r',
      v_name[1], v_name[2]
    )
    into done, result
    using v_keeps, p_limit;
  end if;
  if not v_function.returns_set then
    done := (result ->> 0)::integer;
    result := null;
  end if;
end;
$$;
comment on function trunkline_internal.call_duty(text, integer, boolean) is 'Calls the function of a duty; returns how many rows it processed and, with p_keep_rows, the rows that it returned.';
