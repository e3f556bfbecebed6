-- Calls insert_jobs for a graph; in a refusal it names the step, and the index within a set, instead of the place among all jobs.
create or replace function trunkline_internal.insert_graph_jobs(
  p_workflow uuid,
  p_jobs jsonb,
  p_places integer[],
  p_items integer[],
  p_blocked boolean[],
  p_names text[]
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_detail text;
  v_hint text;
  v_number integer;
begin
  perform trunkline_internal.insert_jobs(
    p_workflow => p_workflow, p_jobs => p_jobs, p_steps => p_places, p_items => p_items, p_blocked => p_blocked
  );
exception
  when data_exception or feature_not_supported then
    v_number := trunkline_internal.misfit(p_jobs => p_jobs, p_now => trunkline.clock()) + 1;
    perform trunkline_internal.refuse_graph(
      p_problem => 'option', p_step => p_names[p_places[v_number] + 1],
      p_path => concat_ws(
        '.', format('steps[%s]', p_places[v_number]), case when p_items[v_number] >= 0 then format('items[%s]', p_items[v_number]) end
      ),
      p_detail => jsonb_build_object('must_be', 'options with the types of enqueue''s arguments', 'reason', sqlerrm)
    );
  when others then
    if sqlstate !~ '^TL' then
      raise;
    end if;
    get stacked diagnostics v_detail = pg_exception_detail, v_hint = pg_exception_hint;
    v_number := (v_detail::jsonb ->> 'index')::integer + 1;
    raise exception using
      errcode = sqlstate, message = sqlerrm, hint = v_hint,
      detail = (v_detail::jsonb - 'index') || jsonb_strip_nulls(jsonb_build_object(
        'step', p_names[p_places[v_number] + 1], 'item', nullif(p_items[v_number], -1)
      ));
end;
$$;
comment on function trunkline_internal.insert_graph_jobs(uuid, jsonb, integer[], integer[], boolean[], text[]) is 'Calls insert_jobs for a graph; in a refusal it names the step, and the index within a set, instead of the place among all jobs.';
