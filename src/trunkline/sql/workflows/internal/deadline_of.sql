-- Returns the deadline of a graph as a time: the document has a time or the time left from now. Refuses other texts and the past.
create or replace function trunkline_internal.deadline_of(p_graph jsonb, p_now timestamptz)
returns timestamptz
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_deadline timestamptz;
  v_text text := p_graph ->> 'deadline';
begin
  if v_text is null then
    return null;
  end if;
  begin
    v_deadline := case when v_text ~ '^\s*\d{4}-' then v_text::timestamptz else p_now + v_text::interval end;
  exception
    when data_exception then
      v_deadline := null;
  end;
  if v_deadline is null or v_deadline <= p_now or v_deadline > timestamptz '9000-01-01 00:00:00+00' then
    perform trunkline_internal.refuse_graph(
      p_problem => 'deadline', p_step => null, p_path => 'deadline',
      p_detail => jsonb_build_object('must_be', 'a later time, or an interval such as 2 days', 'value', left(v_text, 100))
    );
  end if;
  return v_deadline;
end;
$$;
comment on function trunkline_internal.deadline_of(jsonb, timestamptz) is 'Returns the deadline of a graph as a time: the document has a time or the time left from now. Refuses other texts and the past.';
