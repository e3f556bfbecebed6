-- What an operator does to one job is answered and recorded in full, and refused with the state it is in.
\ir ../helpers/tools.sql
\ir ../../support/internals/frozen.sql
select plan(27);

create function t.events(p_job uuid) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select jsonb_agg(jsonb_build_array(t.after_noon(e.at), e.kind, e.to_state, e.attempt, e.task, e.queue, e.tenant, e.worker, e.actor, e.detail) order by e.at, e.kind)
  from trunkline.events as e where e.job_id = p_job
$$;
create function t.waiting(p_job uuid) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select to_jsonb(j) - '{job_id,payload,result,errors,created_at,lease_expires_at,hard_deadline,heartbeat_at,claimed_at,progress,phase,message,worker,finished_at}'::text[]
    || jsonb_build_object('run_at', t.after_noon(j.run_at))
  from trunkline.job(p_job => p_job) as j
$$;
create function t.refused(p_call text, p_job uuid) returns jsonb language sql as $$
  select t.refusal(format('select trunkline.%s', format(p_call, p_job))) - 'message' - 'job'
$$;
set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_queue => 'post') \g /dev/null
set session authorization trunkline_producer;
select job_id as job from trunkline.enqueue(
  p_task => 'mail', p_priority => 7, p_tenant => 'acme', p_unique_key => 'u', p_correlation_id => 'c', p_max_attempts => 4,
  p_tags => array['x'], p_expires_at => :'noon'::timestamptz + interval '1 hour'
) \gset
set session authorization trunkline_worker;
select trunkline.claim(p_worker => 'w1') \g /dev/null
select trunkline.snooze(p_worker => 'w1', p_jobs => array[:'job']::uuid[], p_attempts => array[1], p_delays => array[interval '0'], p_jitter => false) \g /dev/null
select trunkline.claim(p_worker => 'w1') \g /dev/null
set session authorization trunkline_operator;
select is(t.refused('retry(%L)', :'job'), '{"sqlstate": "TL019", "code": "wrong_state", "state": "running", "allowed": ["dead", "completed", "cancelled"]}'::jsonb, 'a running job is not retried');
select is(t.refused('discard(%L)', :'job'), '{"sqlstate": "TL019", "code": "wrong_state", "state": "running", "allowed": ["dead"]}'::jsonb, 'nor discarded');
select is(t.refused('acknowledge(%L)', :'job'), '{"sqlstate": "TL019", "code": "wrong_state", "state": "running", "allowed": ["dead"]}'::jsonb, 'nor acknowledged');
select is(t.refused('reprioritise(%L, 1)', :'job'), '{"sqlstate": "TL019", "code": "wrong_state", "state": "running", "allowed": ["ready", "scheduled", "blocked"]}'::jsonb, 'nor moved');
set session authorization trunkline_worker;
select trunkline.fail(
  p_worker => 'w1', p_jobs => array[:'job']::uuid[], p_attempts => array[2], p_errors => array['{"message": "no"}'::jsonb], p_retryable => array[false]
) \g /dev/null

set session authorization trunkline_operator;
select is(t.refused('reprioritise(%L, 1)', :'job'), '{"sqlstate": "TL019", "code": "wrong_state", "state": "dead", "allowed": ["ready", "scheduled", "blocked"]}'::jsonb, 'a dead one is not moved');
select trunkline_test.move_time('1 minute') \g /dev/null
select is(trunkline.acknowledge(p_job => :'job'), row(:'job'::uuid, 'acknowledged', 'dead')::trunkline.changed_job, 'a dead letter is acknowledged');
select trunkline_test.move_time('1 minute') \g /dev/null
set session authorization trunkline_owner;
select trunkline.acknowledge(p_job => :'job') \g /dev/null
set session authorization trunkline_operator;
select is(
  (select t.after_noon(acknowledged_at) || ' ' || acknowledged_by from trunkline.dead_letters), '00:01:00 trunkline_operator', 'the first time counts'
);
select trunkline_test.move_time('1 minute') \g /dev/null
select is(trunkline.retry(p_job => :'job'), row(:'job'::uuid, false, 'ready', :'noon'::timestamptz + interval '3 minutes')::trunkline.enqueued, 'and replayed');
select is(
  t.waiting(:'job'),
  '{"state": "ready", "task": "mail", "queue": "post", "priority": 7, "tenant": "acme", "attempt": 2, "failures": 0, "crashes": 0, "deferrals": 0,
    "max_attempts": 4, "run_at": "00:03:00", "cancel_requested_at": null, "acknowledged_at": null, "reason": "replayed", "unique_key": "u", "error_group": null, "workflow_id": null, "workflow_step": null, "workflow_item": null,
    "correlation_id": "c", "retry_of": null, "tags": ["x"], "last_error": {"message": "no"}, "expires_at": null}'::jsonb,
  'with new attempts, and all it was enqueued with but its expiry'
);
select is(
  t.events(:'job') - 0 - 0,
  '[["00:01:00", "acknowledged", "dead", 2, "mail", "post", "acme", null, "trunkline_operator", null],
    ["00:02:00", "acknowledged", "dead", 2, "mail", "post", "acme", null, "trunkline_owner", null],
    ["00:03:00", "replayed", "ready", 2, "mail", "post", "acme", null, "trunkline_operator", {"reason_of_death": "not_retryable", "failures": 1}]]'::jsonb,
  'each step is an event'
);
set session authorization trunkline_producer;
select is(
  (select e.created from trunkline.enqueue(p_task => 'mail', p_unique_key => 'u', p_tenant => 'acme') as e), false, 'it holds its key again'
);
select is(trunkline.reprioritise(p_job => :'job', p_priority => 7), row(:'job'::uuid, 'unchanged', 'ready')::trunkline.changed_job, 'to the priority it has');
select is(trunkline.reprioritise(p_job => :'job', p_priority => -3), row(:'job'::uuid, 'reprioritised', 'ready')::trunkline.changed_job, 'to another');
select is(
  (select e from jsonb_array_elements(t.events(:'job')) as e where e ->> 1 = 'reprioritised'),
  '["00:03:00", "reprioritised", "ready", 2, "mail", "post", "acme", null, "trunkline_producer", {"from": 7, "to": -3}]'::jsonb, 'is an event'
);
select is((t.job(:'job')).priority, -3, 'the job has it');
select is(trunkline.cancel(p_job => :'job', p_reason => 'enough'), row(:'job'::uuid, 'cancelled', 'cancelled')::trunkline.changed_job, 'a waiting job is cancelled');
select is(trunkline.cancel(p_job => :'job', p_reason => 'again'), row(:'job'::uuid, 'ended', 'cancelled')::trunkline.changed_job, 'once');
select trunkline_test.move_time('1 minute') \g /dev/null

-- A finished job is retried as another one.
set session authorization trunkline_operator;
select job_id as new from trunkline.retry(p_job => :'job') \gset
select isnt(:'new'::uuid, :'job'::uuid, 'a cancelled job is retried as a new one');
select is(
  t.waiting(:'new'),
  format('{"state": "ready", "task": "mail", "queue": "post", "priority": -3, "tenant": "acme", "attempt": 0, "failures": 0, "crashes": 0, "deferrals": 0,
    "max_attempts": 4, "run_at": "00:04:00", "cancel_requested_at": null, "acknowledged_at": null, "reason": null, "unique_key": "u", "error_group": null, "workflow_id": null, "workflow_step": null, "workflow_item": null,
    "correlation_id": "c", "retry_of": "%s", "tags": ["x"], "last_error": null, "expires_at": null}', :'job')::jsonb,
  'which refers to it and has all it was enqueued with'
);
select is(
  (select e.detail from trunkline.events as e where e.job_id = :'job' and e.kind = 'retried'), jsonb_build_object('new_job', :'new'), 'with an event'
);
select is(
  trunkline.retry(p_job => :'job'), row(:'new'::uuid, false, 'ready', :'noon'::timestamptz + interval '4 minutes')::trunkline.enqueued,
  'until that has ended it is the answer'
);
select is((select count(*) from trunkline.events where job_id = :'job' and kind = 'retried'), 1::bigint, 'without another event');
select trunkline.cancel(p_job => :'new') \g /dev/null
select trunkline_test.move_time('1 minute') \g /dev/null
select job_id as newer from trunkline.retry(p_job => :'job') \gset
select ok(:'newer' not in (:'new', :'job'), 'then there is a third one');
select trunkline_test.move_time('1 minute') \g /dev/null
select is((select job_id from trunkline.retry(p_job => :'job')), :'newer'::uuid, 'and the last of them is the answer');

-- One whose key another job holds is not retried under it: the holder is the answer, and no job of ours refers to the old one.
select trunkline.cancel(p_job => :'newer') \g /dev/null
select job_id as holder from trunkline.enqueue(p_task => 'mail', p_unique_key => 'u', p_tenant => 'acme') \gset
select is((select job_id || ' ' || created from trunkline.retry(p_job => :'job')), :'holder' || ' false', 'a key that another job holds');
select is((t.job(:'holder')).retry_of, null, 'that is no retry');

set session authorization trunkline_worker;
select t.dead('mail') as gone \gset
set session authorization trunkline_operator;
select is(trunkline.discard(p_job => :'gone', p_reason => 'old'), row(:'gone'::uuid, 'discarded', null)::trunkline.changed_job, 'a dead letter is discarded');

select * from finish();
