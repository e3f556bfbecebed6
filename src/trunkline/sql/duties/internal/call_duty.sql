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
  v_call text := format('%s(%s)', p_function, case when p_limit is not null then 'p_limit => $1' end);
  v_function record;
begin
  select p.proretset as returns_set, p.prorettype::regtype in ('smallint', 'integer', 'bigint') as returns_number
  into strict v_function
  from pg_catalog.pg_proc as p
  where p.oid = p_function::regproc;
  if v_function.returns_set then
    execute format(
      'select count(*)::integer, jsonb_agg(to_jsonb(r.returned)) filter (where $2) from (select %s as returned) as r', v_call
    )
    into done, result
    using p_limit, p_keep_rows;
  elsif v_function.returns_number then
    execute format('select %s::integer', v_call) into done using p_limit;
  else
    execute format('select %s', v_call) using p_limit;
  end if;
end;
$$;
comment on function trunkline_internal.call_duty(text, integer, boolean) is 'Calls the function of a duty; returns how many rows it processed and, with p_keep_rows, the rows that it returned.';
