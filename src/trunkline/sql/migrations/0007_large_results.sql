-- why: large results are read by everything that reads results, results of steps may go to the store, and files are kept while a workflow needs them
-- breaking: no

alter table trunkline_internal.staged_artifacts add column step_key text;
comment on column trunkline_internal.staged_artifacts.step_key is 'The key of that step, or # and the number of the call. Null: any call of that name.';

create table trunkline_internal.map_elements (
  artifact_id uuid not null,
  first_element integer not null check (first_element >= 0),
  workflow_id uuid not null,
  total integer not null check (total >= 0),
  elements jsonb not null,
  constraint map_elements_pkey primary key (artifact_id, first_element)
);
comment on table trunkline_internal.map_elements is 'The elements of lists in the store that maps run over, in chunks. They go with the workflow.';
comment on column trunkline_internal.map_elements.artifact_id is 'The file of the list. A stale attempt may have stored elements too, under another file.';
create index map_elements_by_workflow on trunkline_internal.map_elements (workflow_id);
alter table trunkline_internal.map_elements enable row level security, force row level security;
create policy owner_rows on trunkline_internal.map_elements to trunkline_owner using (true) with check (true);

-- The file of a result that is in the store; null for any other result.
alter type trunkline.dependency_result
  add attribute path text,
  add attribute sha256 text,
  add attribute bytes bigint;
alter type trunkline.recorded_step
  add attribute path text,
  add attribute sha256 text;
alter type trunkline.wait_answer
  add attribute path text,
  add attribute sha256 text;
alter type trunkline.job_step add attribute bytes bigint;
comment on type trunkline.job_step is 'A step of a job: recorded with its result, or waiting until a time or an event. bytes is the size of a result in the store.';

-- Each has another parameter now. Calls without it mean the same as before. A new database does not have them.
-- squawk-ignore ban-drop-function
drop function if exists trunkline.begin_artifact(text, uuid, integer, text, text, text, bigint, text);
-- squawk-ignore ban-drop-function
drop function if exists trunkline_internal.keep_artifacts(uuid[], integer[], text[]);
-- squawk-ignore ban-drop-function
drop function if exists trunkline_internal.map_requests(
  trunkline_internal.workflows, trunkline_internal.workflow_steps, trunkline_internal.workflow_steps, jsonb, integer
);

comment on column trunkline_internal.artifacts.expires_at is 'When the artifact is deleted. While its workflow needs it, the duty moves this time on.';
