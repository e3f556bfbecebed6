-- A table of calls with what each one is refused with, compared all at once: accepted, or the argument that is refused,
-- or the name of the refusal. Every call is undone.
create table t.cases (place serial, call text not null, expected text not null);
grant select, insert, delete on t.cases to public;
grant usage on sequence t.cases_place_seq to public;

create function t.outcome(p_call text) returns text
language plpgsql volatile
as $$
declare
  v_detail text;
  v_state text;
begin
  begin
    execute 'select * from trunkline.' || p_call;
    raise exception using errcode = 'UNDO0';
  exception
    when sqlstate 'UNDO0' then
      return 'accepted';
    when others then
      get stacked diagnostics v_detail = pg_exception_detail, v_state = returned_sqlstate;
      if v_state not like 'TL%' then
        return v_state || ' ' || sqlerrm;
      end if;
      return coalesce(v_detail::jsonb ->> 'argument', v_detail::jsonb ->> 'code')
        || case when v_detail::jsonb ? 'argument' and v_detail::jsonb ->> 'must_be' is null then ' without what it must be' else '' end;
  end;
end;
$$;

-- The cases that came out differently.
create function t.surprises() returns table (call text, expected text, outcome text)
language sql volatile
as $$
  select left(c.call, 200), c.expected, o.outcome
  from t.cases as c
  cross join lateral (select t.outcome(c.call) as outcome) as o
  where o.outcome is distinct from c.expected
  order by c.place
$$;
