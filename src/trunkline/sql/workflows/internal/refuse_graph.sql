-- Refuses a graph as invalid_workflow; the detail names the problem, the step and the path within the document.
create or replace function trunkline_internal.refuse_graph(
  p_problem text,
  p_step text,
  p_path text,
  p_detail jsonb default '{}'
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform trunkline_internal.refuse(
    p_name => 'invalid_workflow',
    p_detail => jsonb_strip_nulls(jsonb_build_object('problem', p_problem, 'step', p_step, 'path', p_path)) || p_detail
  );
end;
$$;
comment on function trunkline_internal.refuse_graph(text, text, text, jsonb) is 'Refuses a graph as invalid_workflow; the detail names the problem, the step and the path within the document.';
