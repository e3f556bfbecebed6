-- The rows of explain are complete: reason, until when, and all that is known about it.
\ir ../helpers/tools.sql
\ir ../../support/internals/frozen.sql
select plan(11);

create function t.explained(p_job uuid) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select jsonb_agg(jsonb_build_array(e.reason, t.after_noon(e.until), e.detail)) from trunkline.explain(p_job => p_job) as e
$$;
set session authorization trunkline_worker;
select trunkline.register_worker(p_worker => 'w1', p_pulse_interval => '1 hour') \g /dev/null
set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail', p_backoff => '{"base": 60, "jitter": 0}') \g /dev/null
select t.started('mail') as running \gset
select is(
  t.explained(:'running'),
  jsonb_build_array(jsonb_build_array('running', '00:05:00', jsonb_build_object(
    'worker', 'w1', 'attempt', 1, 'claimed_at', :'noon'::timestamptz, 'cancel_requested_at', null
  ))),
  'a running job'
);
select trunkline_test.move_time('1 minute') \g /dev/null
select trunkline.cancel(p_job => :'running') \g /dev/null
select is(
  t.explained(:'running') -> 0 -> 2 -> 'cancel_requested_at',
  to_jsonb(:'noon'::timestamptz + interval '1 minute'), 'one that was asked to stop'
);
select t.dead('mail') as dead \gset
select is(
  t.explained(:'dead'),
  jsonb_build_array(jsonb_build_array('dead', null, jsonb_build_object(
    'finished_at', :'noon'::timestamptz + interval '1 minute', 'reason', 'not_retryable', 'last_error', '{"message": "no"}'::jsonb
  ))),
  'a dead letter'
);
select job_id as later from trunkline.enqueue(p_task => 'mail', p_delay => '1 hour', p_expires_at => :'noon'::timestamptz + interval '2 hours') \gset
select is(
  t.explained(:'later'),
  '[["scheduled", "01:01:00", {"reason": "not due yet", "failures": 0, "deferrals": 0}],
    ["expires", "02:00:00", {"hint": "if the job has not started by then, it ends cancelled with reason expired"}]]'::jsonb,
  'one that is scheduled and expires'
);
set session authorization trunkline_worker;
select t.started('mail') as failed \gset
select trunkline.fail(p_worker => 'w1', p_jobs => array[:'failed']::uuid[], p_attempts => array[1]) \g /dev/null
set session authorization trunkline_producer;
select is(
  t.explained(:'failed'), '[["scheduled", "00:02:00", {"reason": "retry", "failures": 1, "deferrals": 0}]]'::jsonb,
  'one that has failed'
);

-- How many are ahead: of its queue, ready, with a higher priority, or the same and older.
select job_id as asked from trunkline.enqueue(p_task => 'mail', p_priority => 3) \gset
select trunkline.enqueue(p_task => 'mail', p_priority => 3) \g /dev/null
select trunkline.enqueue(p_task => 'mail', p_priority => 2) \g /dev/null
select trunkline.enqueue(p_task => 'mail', p_priority => 4, p_queue => 'other') \g /dev/null
select trunkline.enqueue(p_task => 'mail', p_priority => 4, p_delay => '1 minute') \g /dev/null
select is(t.explained(:'asked'), '[["waiting_its_turn", null, {"ahead": 0, "counted_up_to": 1000}]]'::jsonb, 'those behind, elsewhere or not due are not ahead');
select trunkline.enqueue(p_task => 'mail', p_priority => 4), trunkline.enqueue(p_task => 'mail', p_priority => 5) \g /dev/null
select job_id as behind from trunkline.enqueue(p_task => 'mail', p_priority => 3) \gset
select is(t.explained(:'asked'), '[["waiting_its_turn", null, {"ahead": 2, "counted_up_to": 1000}]]'::jsonb, 'those of a higher priority are');
select is(t.explained(:'behind'), '[["waiting_its_turn", null, {"ahead": 4, "counted_up_to": 1000}]]'::jsonb, 'and the older ones of the same');
select trunkline.enqueue_many((select jsonb_agg('{"task": "mail", "priority": 3}'::jsonb) from generate_series(1, 1500))) \g /dev/null
select job_id as last from trunkline.enqueue(p_task => 'mail', p_priority => 3) \gset
select is(t.explained(:'last') -> 0 -> 2, '{"ahead": 1000, "counted_up_to": 1000}'::jsonb, 'counting stops at a thousand');

set session authorization trunkline_operator;
select trunkline.pause_queue(p_queue => 'default', p_reason => 'strike') \g /dev/null
select trunkline.set_setting(p_name => 'claims_enabled', p_value => 'false') \g /dev/null
set session authorization trunkline_worker;
select trunkline.stop_worker(p_worker => 'w1') \g /dev/null
select is(
  t.explained(:'asked') - 3,
  jsonb_build_array(
    '["claims_disabled", null, {"setting": "claims_enabled"}]'::jsonb,
    jsonb_build_array('queue_paused', null, jsonb_build_object(
      'queue', 'default', 'reason', 'strike', 'since', :'noon'::timestamptz + interval '1 minute', 'by', 'trunkline_operator'
    )),
    '["no_worker", null, {"queue": "default", "task": "mail", "hint": "no registered worker that is alive serves this queue and task"}]'::jsonb
  ),
  'what keeps all jobs from running'
);
set session authorization trunkline_producer;
select is(
  t.refusal($$select * from trunkline.explain('00000000-0000-7000-8000-000000000000')$$) - 'message',
  '{"sqlstate": "TL015", "code": "unknown_job", "job": "00000000-0000-7000-8000-000000000000"}'::jsonb,
  'a job that does not exist is refused'
);

select * from finish();
