-- Inserts the next jobs of a map, at most p_most; returns how many. The first call fixes their number.
-- none -> ready | scheduled. A map whose source is no array, or that would exceed max_workflow_jobs, fails with that reason, as does
-- one whose jobs enqueue refuses, or whose source is a file in the store
-- without staged elements; a refusal that passes by itself is tried again. Such a step has no dead job, because no
-- payload exists that could be run again: retry_workflow expands it again. The caller holds the workflow's lock.
create or replace function trunkline_internal.expand_map(p_workflow uuid, p_place integer, p_most integer, p_now timestamptz)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_elements jsonb;
  v_jobs jsonb;
  v_list uuid;
  v_most integer := trunkline_internal.setting(p_name => 'max_workflow_jobs')::integer;
  v_number integer;
  v_reason text;
  v_source trunkline_internal.workflow_steps;
  v_step trunkline_internal.workflow_steps;
  v_total integer;
  v_workflow trunkline_internal.workflows;
begin
  select w.* into strict v_workflow from trunkline_internal.workflows as w where w.workflow_id = p_workflow;
  select s.* into v_step
  from trunkline_internal.workflow_steps as s
  where s.workflow_id = p_workflow and s.place = p_place and s.state = 'open' and (s.items is null or s.expanded < s.items);
  if not found or v_workflow.state <> 'live' then
    return 0;
  end if;
  select s.* into strict v_source
  from trunkline_internal.workflow_steps as s
  where s.workflow_id = p_workflow and s.place = v_step.map_over;
  if v_source.kind = 'job' then
    select r.result, case when r.path is not null then trunkline_internal.result_reference(p_result => r.result) end
    into v_elements, v_list
    from trunkline_internal.step_results(p_workflow => p_workflow, p_place => v_step.map_over, p_from => 0, p_limit => 1) as r;
    if v_list is null then
      v_total := case when jsonb_typeof(v_elements) = 'array' then jsonb_array_length(v_elements) end;
    else
      select m.total into v_total
      from trunkline_internal.map_elements as m
      where m.artifact_id = v_list and m.first_element = 0;
    end if;
  else
    v_total := v_source.items;
  end if;
  if v_step.items is null then
    if v_total is null then
      v_reason := case when v_list is null then 'map_not_array' else 'map_in_store' end;
    elsif v_workflow.jobs + v_total > v_most then
      v_reason := 'map_too_large';
    else
      update trunkline_internal.workflow_steps as s
      set items = v_total
      where s.workflow_id = p_workflow and s.place = p_place;
      update trunkline_internal.workflows as w set jobs = w.jobs + v_total where w.workflow_id = p_workflow;
    end if;
  end if;
  if v_reason is null and v_total > 0 then
    v_number := least(p_most, v_total - v_step.expanded);
    if v_list is not null then
      select jsonb_agg(e.element order by m.first_element + e.place) into v_elements
      from trunkline_internal.map_elements as m
      cross join lateral jsonb_array_elements(m.elements) with ordinality as e (element, place)
      where m.artifact_id = v_list
        and m.first_element between v_step.expanded - 999 and v_step.expanded + v_number - 1
        and m.first_element + e.place - 1 between v_step.expanded and v_step.expanded + v_number - 1;
    end if;
    v_jobs := trunkline_internal.map_requests(
      p_workflow => v_workflow, p_step => v_step, p_source => v_source, p_elements => v_elements,
      p_first => case when v_list is null then 0 else v_step.expanded end, p_number => v_number
    );
    begin
      perform trunkline_internal.insert_jobs(
        p_workflow => p_workflow, p_jobs => v_jobs, p_steps => array_fill(p_place, array[v_number]),
        p_items => array(select n from generate_series(v_step.expanded, v_step.expanded + v_number - 1) as n),
        p_blocked => array_fill(true, array[v_number])
      );
    exception
      when others then
        if sqlstate in ('TL010', 'TL011', 'TL018', 'TL034', 'TL035') then
          return 0;
        elsif sqlstate !~ '^(TL|22)' then
          raise;
        end if;
        v_reason := left('map_refused: ' || sqlerrm, 500);
    end;
  end if;
  if v_reason is not null then
    update trunkline_internal.workflow_steps as s
    set state = 'failed', reason = v_reason, ended_at = p_now
    where s.workflow_id = p_workflow and s.place = p_place;
    perform trunkline_internal.cancel_dependants(p_workflow => p_workflow, p_places => array[p_place], p_now => p_now);
    perform trunkline_internal.advance_workflow(p_workflow => p_workflow, p_now => p_now, p_places => '{}');
    return 0;
  end if;
  if v_total = 0 then
    perform trunkline_internal.advance_workflow(p_workflow => p_workflow, p_now => p_now, p_places => array[p_place]);
    return 0;
  end if;
  update trunkline_internal.workflow_steps as s
  set expanded = s.expanded + v_number
  where s.workflow_id = p_workflow and s.place = p_place;
  perform trunkline_internal.unblock_jobs(p_workflow => p_workflow, p_places => array[p_place], p_now => p_now);
  return v_number;
end;
$$;
comment on function trunkline_internal.expand_map(uuid, integer, integer, timestamptz) is 'Inserts the next jobs of a map, at most p_most; returns how many. The first call fixes their number.';
