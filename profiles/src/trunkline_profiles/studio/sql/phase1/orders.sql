-- Orders: the start of a job with all its tasks in one transaction, cancellation, deletion and retry.
-- requires: base, catalogue, routing
-- source: 2.2, 2.11

create or replace function studio.params_problem(p_params jsonb)
returns text
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_born timestamptz;
  v_person jsonb;
  v_who text;
begin
  if jsonb_typeof(p_params) is distinct from 'object' then
    return 'params is not an object';
  end if;
  foreach v_who in array array['person1', 'person2'] loop
    v_person := p_params -> v_who;
    if jsonb_typeof(v_person) is distinct from 'object' then
      return format('%s is not an object', v_who);
    end if;
    if jsonb_typeof(v_person -> 'name') is distinct from 'string' or length(v_person ->> 'name') not between 1 and 100 then
      return format('%s.name is not a text of 1 to 100 characters', v_who);
    end if;
    begin
      if jsonb_typeof(v_person -> 'born') is distinct from 'string' or v_person ->> 'born' !~ '^\d{4}-\d{2}-\d{2}' then
        return format('%s.born is not a date or time in ISO 8601', v_who);
      end if;
      v_born := (v_person ->> 'born')::timestamptz;
    exception
      when data_exception then
        return format('%s.born is not a date or time in ISO 8601', v_who);
    end;
    if v_born > trunkline.clock() then
      return format('%s.born is in the future', v_who);
    end if;
  end loop;
  if jsonb_typeof(p_params -> 'systems') is distinct from 'array' or p_params -> 'systems' = '[]' then
    return 'systems is not a list with at least one system';
  end if;
  return (
    select format('systems has %s, which is not a known system', s.value)
    from jsonb_array_elements(p_params -> 'systems') as s (value)
    where s.value #>> '{}' not in (select k.system from studio.systems as k)
      or jsonb_typeof(s.value) <> 'string'
    limit 1
  );
end;
$$;
comment on function studio.params_problem(jsonb) is 'Returns what is wrong with the params of an order; null if nothing is.';

create or replace function studio.order_graph(p_type text, p_params jsonb)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  with order_day as (
    -- Becomes part of the files, so that each attempt gives the same bytes.
    select jsonb_build_object('day', to_char(trunkline.clock() at time zone 'UTC', 'YYYY-MM-DD')) as day
  ),
  steps as (
    select 3 * (d.document - 1) + t.place as sequence, s.name, jsonb_strip_nulls(jsonb_build_object(
      'name', s.name,
      'task', t.task_type,
      'phase', split_part(t.task_type, '_', 1),
      'payload', jsonb_build_object('document', d.document, 'title', d.title) || case t.place
        when 0 then jsonb_build_object(
          'person1', p_params -> 'person1', 'person2', p_params -> 'person2', 'systems', p_params -> 'systems'
        )
        -- Both wait for the text of their own document, and for nothing else.
        else jsonb_build_object('text', jsonb_build_object('$result', format('text-%s', to_char(d.document, 'FM00'))))
          || case t.place when 1 then o.day else '{}' end
      end
    )) as step
    from studio.documents as d
    cross join studio.task_types as t
    cross join lateral (select format('%s-%s', split_part(t.task_type, '_', 1), to_char(d.document, 'FM00')) as name) as s
    cross join order_day as o
    where d.type = p_type and t.place is not null
  )
  select jsonb_build_object(
    'name', p_type,
    'params', p_params,
    'phases', (
      select jsonb_agg(jsonb_build_object('name', f.name, 'weight', f.weight) order by f.place)
      -- Nothing has to be done for the first phase: it is over when a task starts.
      from (
        values (1, 'calculating', 10), (2, 'text', 40), (3, 'pdf', 20), (4, 'audio', 25), (5, 'finalizing', 5)
      ) as f (place, name, weight)
    ),
    'steps', (select jsonb_agg(s.step order by s.sequence) from steps as s) || jsonb_build_object(
      'name', 'finalize',
      'task', 'finalize_job',
      'phase', 'finalizing',
      'after', (select jsonb_agg(s.name order by s.sequence) from steps as s),
      'payload', jsonb_build_object(
        'title', (select j.title from studio.job_types as j where j.type = p_type),
        'author', format('%s and %s', p_params #>> '{person1,name}', p_params #>> '{person2,name}')
      ) || (select o.day from order_day as o)
    )
  )
$$;
comment on function studio.order_graph(text, jsonb) is 'Returns the graph of an order: text, PDF and audio for each document, and the task that combines them; the place of a step is its sequence.';

create or replace function studio.start_job(
  p_type text,
  p_params jsonb,
  p_idempotency_key text default null,
  p_user_id uuid default null,
  out job_id uuid,
  out status text,
  out created boolean
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_problem text;
  v_scope text := trunkline.tenant_scope();
  v_started trunkline.started_workflow;
  v_user text := coalesce(p_user_id::text, v_scope);
begin
  if coalesce(v_user, '') = '' or v_user <> coalesce(v_scope, v_user) then
    perform studio.refuse(
      p_code => 'user_missing',
      p_message => case when v_scope is null then 'the order has no user' else 'a user orders only under their own id' end,
      p_detail => jsonb_build_object('user_id', p_user_id)
    );
  end if;
  if (select r.new_jobs = 'legacy' from studio.routing as r) then
    perform studio.refuse(p_code => 'start_elsewhere', p_message => 'new jobs start in the older system');
  end if;
  if not exists (select from studio.job_types as t where t.type = p_type and t.is_active) then
    perform studio.refuse(
      p_code => 'unknown_type', p_message => format('there is no type %s', coalesce(quote_literal(left(p_type, 100)), 'null')),
      p_detail => jsonb_build_object('types', (select jsonb_agg(t.type order by t.type) from studio.job_types as t where t.is_active))
    );
  end if;
  perform studio.require_small(p_value => p_params, p_what => 'params');
  v_problem := studio.params_problem(p_params => p_params);
  if v_problem is not null then
    perform studio.refuse(
      p_code => 'invalid_params', p_message => v_problem,
      p_detail => jsonb_build_object('systems', (select jsonb_agg(s.system order by s.system) from studio.systems as s))
    );
  end if;
  v_started := trunkline.start_workflow(p_graph => studio.order_graph(p_type => p_type, p_params => p_params) || jsonb_strip_nulls(
    jsonb_build_object('tenant', v_user, 'idempotency_key', p_idempotency_key)
  ));
  job_id := v_started.workflow_id;
  status := studio.job_status(p_state => v_started.state);
  created := v_started.created;
end;
$$;
comment on function studio.start_job(text, jsonb, text, uuid) is 'Starts a job with all its tasks, or returns the job that the same user started with the same idempotency key. Signed-in users order for themselves.';

create or replace function studio.job_status(p_state text)
returns text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select case p_state when 'running' then 'processing' when 'completed' then 'complete' else p_state end
$$;
comment on function studio.job_status(text) is 'Returns the status of a job for the state of its workflow.';

create or replace function studio.require_job(p_job uuid)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if not exists (
    select
    from trunkline.workflows as w
    join studio.job_types as t on t.type = w.name
    where w.workflow_id = p_job
  ) then
    perform studio.refuse(
      p_code => 'unknown_job', p_message => format('there is no job %s', p_job), p_detail => jsonb_build_object('job_id', p_job)
    );
  end if;
end;
$$;
comment on function studio.require_job(uuid) is 'Refuses the id of a job that does not exist, or that the caller may not see.';

create or replace function studio.cancel_job(p_job_id uuid, p_reason text default null)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform studio.require_job(p_job => p_job_id);
  return (trunkline.cancel_workflow(p_workflow => p_job_id, p_reason => coalesce(p_reason, 'cancelled by the user'))).outcome;
end;
$$;
comment on function studio.cancel_job(uuid, text) is 'Cancels the waiting tasks of a job at once and running ones at their next heartbeat. Files of complete tasks stay until their retention is over.';

create or replace function studio.delete_job(p_job_id uuid)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform studio.require_job(p_job => p_job_id);
  perform trunkline.cancel_workflow(p_workflow => p_job_id, p_reason => 'deleted by the user');
  -- A task that runs still uploads: its files are known when it has ended.
  if exists (select from trunkline.workflows as w where w.workflow_id = p_job_id and w.ended_at is null) then
    return 'cancelling';
  end if;
  perform trunkline.delete_artifact(p_artifact => a.artifact_id, p_reason => 'the job was deleted')
  from trunkline.artifacts as a
  where a.workflow_id = p_job_id and a.deleted_at is null;
  perform trunkline.delete_workflow(p_workflow => p_job_id);
  return 'deleted';
end;
$$;
comment on function studio.delete_job(uuid) is 'Deletes a job with its tasks and the rows of its files; the files are queued for removal. While tasks run it cancels them and returns cancelling: call it again.';

create or replace function studio.retry_job(p_job_id uuid)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform studio.require_job(p_job => p_job_id);
  return (trunkline.retry_workflow(p_workflow => p_job_id)).outcome;
end;
$$;
comment on function studio.retry_job(uuid) is 'Runs the failed tasks of a job again, and those that were cancelled because of them. Complete tasks keep their files.';
