-- Requests: one export, or a batch; each is checked, counted and stored in one transaction.
-- requires: base, documents, records, status, options, storage
-- source: 2.3, 2.9, 2.17

create or replace function exports.create_export_job(
  p_document_id uuid,
  p_options jsonb default '{}',
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
  v_answer trunkline.enqueued;
  v_bytes bigint;
  v_key text;
  v_options jsonb := exports.checked_options(p_options => p_options);
  v_user uuid := exports.acting_user(p_user_id => p_user_id);
  v_version integer;
begin
  select d.version into v_version from exports.documents as d where d.id = p_document_id and d.user_id = v_user;
  if not found then
    perform exports.refuse(
      p_code => 'unknown_document', p_message => format('there is no document %s', p_document_id),
      p_detail => jsonb_build_object('documentId', p_document_id)
    );
  end if;
  v_key := exports.dedupe_key(p_document => p_document_id, p_version => v_version, p_options => v_options);
  -- The engine's key makes equal requests one job, however many arrive at once. What is refused below undoes the job.
  v_answer := trunkline.enqueue(
    p_task => 'export_document', p_payload => jsonb_build_object('document_id', p_document_id), p_tenant => v_user::text,
    p_unique_key => v_key
  );
  job_id := v_answer.job_id;
  status := exports.job_status(p_state => v_answer.state);
  created := v_answer.created;
  if not created then
    return;
  end if;
  -- From here on, requests of this user take turns.
  perform exports.spend_operations(p_user_id => v_user, p_count => 1);
  perform exports.close_ended(p_user_id => v_user);
  perform exports.require_places(p_user_id => v_user, p_count => 1);
  v_bytes := exports.estimated_bytes(p_user_id => v_user);
  perform exports.require_room(p_user_id => v_user, p_bytes => v_bytes);
  insert into exports.requests (job_id, user_id, document_id, document_version, options, dedupe_key, reserved_bytes, created_at)
  values (create_export_job.job_id, v_user, p_document_id, v_version, v_options, v_key, v_bytes, trunkline.clock());
exception
  when sqlstate 'TL011' or sqlstate 'TL034' then
    perform exports.refuse(p_code => 'queue_full', p_message => 'the queue is full, please wait');
end;
$$;
comment on function exports.create_export_job(uuid, jsonb, uuid) is 'Queues the export of a document, or returns the live export of the same version with the same options, which costs nothing.';

create or replace function exports.batch_documents(p_document_ids jsonb, p_user_id uuid)
returns table (place integer, document_id uuid, version integer)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_most integer := (select s.documents_per_batch from exports.settings as s);
  v_problem text;
  v_unknown text;
begin
  v_problem := case
    when jsonb_typeof(p_document_ids) is distinct from 'array' then 'must be a list of ids'
    when jsonb_array_length(p_document_ids) = 0 then 'must have at least one id'
    when jsonb_array_length(p_document_ids) > v_most then format('must have at most %s ids', v_most)
    when exists (
      select
      from jsonb_array_elements(p_document_ids) as e (value)
      where jsonb_typeof(e.value) <> 'string'
        or e.value #>> '{}' !~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
    ) then 'must be a list of ids'
  end;
  if v_problem is not null then
    perform exports.refuse(
      p_code => 'invalid_request', p_message => 'the list of documents is not valid',
      p_detail => jsonb_build_object('fields', jsonb_build_object('documentIds', v_problem))
    );
  end if;
  select e.id into v_unknown
  from jsonb_array_elements_text(p_document_ids) as e (id)
  where not exists (select from exports.documents as d where d.id = e.id::uuid and d.user_id = p_user_id)
  limit 1;
  if found then
    perform exports.refuse(
      p_code => 'unknown_document', p_message => format('there is no document %s', v_unknown),
      p_detail => jsonb_build_object('documentId', v_unknown)
    );
  end if;
  return query
  select (row_number() over (order by min(e.place)))::integer - 1, d.id, d.version
  from jsonb_array_elements_text(p_document_ids) with ordinality as e (id, place)
  join exports.documents as d on d.id = e.id::uuid
  group by d.id, d.version;
end;
$$;
comment on function exports.batch_documents(jsonb, uuid) is 'Returns the documents of a batch without repetitions, in the order of the list; refuses a wrong list, and documents of others.';

create or replace function exports.create_export_batch(p_document_ids jsonb, p_options jsonb default '{}', p_user_id uuid default null)
returns jsonb
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_batch trunkline.started_workflow;
  v_bytes bigint;
  v_count integer;
  v_documents jsonb;
  v_options jsonb := exports.checked_options(p_options => p_options);
  v_running bigint;
  v_user uuid := exports.acting_user(p_user_id => p_user_id);
begin
  select jsonb_agg(to_jsonb(b) order by b.place), count(*)
  into v_documents, v_count
  from exports.batch_documents(p_document_ids => p_document_ids, p_user_id => v_user) as b;
  v_batch := trunkline.start_workflow(p_graph => jsonb_build_object(
    'name', 'export_batch',
    'tenant', v_user::text,
    'unique_key', (
      select 'batch:' || encode(sha256(convert_to(string_agg(k.key, '|' order by k.key), 'UTF8')), 'hex')
      from jsonb_to_recordset(v_documents) as b (document_id uuid, version integer)
      cross join lateral exports.dedupe_key(p_document => b.document_id, p_version => b.version, p_options => v_options) as k (key)
    ),
    'steps', (
      select jsonb_agg(
        jsonb_build_object(
          'name', format('document-%s', to_char(b.place + 1, 'FM00')), 'task', 'export_document',
          'payload', jsonb_build_object('document_id', b.document_id)
        )
        order by b.place
      )
      from jsonb_to_recordset(v_documents) as b (place integer, document_id uuid)
    )
  ));
  if v_batch.created then
    perform exports.spend_operations(p_user_id => v_user, p_count => v_count);
    perform exports.close_ended(p_user_id => v_user);
    select count(*) into v_running from exports.live_requests(p_user_id => v_user) as l where l.is_running;
    if v_running >= (select s.running_for_batch from exports.settings as s) then
      perform exports.refuse(
        p_code => 'batch_busy', p_message => format('%s of your exports are running, please wait', v_running),
        p_detail => jsonb_build_object('running', v_running)
      );
    end if;
    perform exports.require_places(p_user_id => v_user, p_count => v_count);
    v_bytes := exports.estimated_bytes(p_user_id => v_user);
    perform exports.require_room(p_user_id => v_user, p_bytes => v_bytes * v_count);
    insert into exports.requests (
      job_id, user_id, document_id, document_version, options, batch_id, dedupe_key, reserved_bytes, created_at
    )
    select
      j.job_id, v_user, b.document_id, b.version, v_options, v_batch.workflow_id,
      exports.dedupe_key(
        p_document => b.document_id, p_version => b.version, p_options => v_options, p_batch => v_batch.workflow_id
      ),
      v_bytes, trunkline.clock()
    from trunkline.workflow_jobs(p_workflow => v_batch.workflow_id, p_limit => 1000) as j
    join jsonb_to_recordset(v_documents) as b (place integer, document_id uuid, version integer) on b.place = j.workflow_step;
  end if;
  return jsonb_build_object('batchId', v_batch.workflow_id, 'created', v_batch.created, 'jobs', (
    select jsonb_agg(jsonb_build_object('jobId', j.job_id, 'documentId', r.document_id) order by j.workflow_step)
    from trunkline.workflow_jobs(p_workflow => v_batch.workflow_id, p_limit => 1000) as j
    join exports.requests as r on r.job_id = j.job_id
  ));
exception
  when sqlstate 'TL011' or sqlstate 'TL034' then
    perform exports.refuse(p_code => 'queue_full', p_message => 'the queue is full, please wait');
    return null;
end;
$$;
comment on function exports.create_export_batch(jsonb, jsonb, uuid) is 'Queues the exports of up to ten documents, all or none, or returns the live batch of the same versions with the same options.';
