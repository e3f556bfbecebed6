-- Stores elements of a list that a running attempt has staged as its result, for maps over it; returns whether more are wanted.
-- The first call may pass no elements: it asks whether any map runs over the job's step. p_from is the index of the first
-- element; every call but the last passes 1000 of them. Of a list that is too long for a workflow, only the length is stored.
create or replace function trunkline.stage_elements(
  p_worker text,
  p_job uuid,
  p_attempt integer,
  p_artifact uuid,
  p_total integer,
  p_from integer default 0,
  p_elements jsonb default '[]'
)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  c_chunk constant integer := 1000;
  v_running trunkline_internal.running%rowtype;
begin
  if p_total is null or p_total < 0 or p_from is null or p_from < 0 or p_from % c_chunk <> 0
    or jsonb_typeof(p_elements) is distinct from 'array' or jsonb_array_length(p_elements) > c_chunk
  then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object(
        'argument', 'p_from, p_elements', 'must_be', 'an array of at most 1000 elements, and a multiple of 1000 as its first index'
      )
    );
  end if;
  v_running := trunkline_internal.lock_uploader(p_worker => p_worker, p_job => p_job, p_attempt => p_attempt);
  if not exists (
    select from trunkline_internal.staged_artifacts as s
    where s.artifact_id = p_artifact and s.job_id = p_job and s.attempt = p_attempt
  ) then
    perform trunkline_internal.refuse(p_name => 'unknown_artifact', p_detail => jsonb_build_object('artifact', p_artifact));
  end if;
  if not exists (
    select from trunkline_internal.workflow_steps as s
    join trunkline_internal.workflow_steps as m on m.workflow_id = s.workflow_id and m.kind = 'map' and m.map_over = s.place
    where s.workflow_id = v_running.workflow_id and s.place = v_running.workflow_step and s.kind = 'job'
  ) then
    return false;
  end if;
  insert into trunkline_internal.map_elements as m (artifact_id, first_element, workflow_id, total, elements)
  values (p_artifact, p_from, v_running.workflow_id, p_total, p_elements)
  on conflict (artifact_id, first_element) do update set total = excluded.total, elements = excluded.elements;
  return p_total <= trunkline_internal.setting(p_name => 'max_workflow_jobs')::integer
    and p_from + jsonb_array_length(p_elements) < p_total;
end;
$$;
comment on function trunkline.stage_elements(text, uuid, integer, uuid, integer, integer, jsonb) is 'Stores elements of a list that a running attempt has staged as its result, for maps over it; returns whether more are wanted.';
