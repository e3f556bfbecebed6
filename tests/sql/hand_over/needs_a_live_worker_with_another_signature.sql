-- A job is put back only for a live worker that serves its task, queue and tenant with other code; otherwise it is dead at once.
\ir ../helpers/tools.sql
select plan(19);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select trunkline.register_worker(p_worker => 'w1', p_tasks => array['mail'], p_detail => '{"slots": 4, "signatures": {"mail": "old"}}') \g /dev/null

-- What becomes of a new job that w1 hands over, with the worker it is handed to.
create function pg_temp.handed(p_field text default 'colour', p_result text default null) returns text language plpgsql as $$
declare
  v_answer trunkline.handover;
  v_job uuid := t.started(p_task => 'mail');
begin
  select h.* into strict v_answer from trunkline.hand_over(
    p_worker => 'w1', p_jobs => array[v_job], p_attempts => array[1],
    p_errors => array[jsonb_strip_nulls(jsonb_build_object('message', 'does not fit', 'field', p_field, 'result', p_result))]
  ) as h;
  if (t.job(v_job)).state <> v_answer.state then
    raise exception 'the job is % and not %', (t.job(v_job)).state, v_answer.state;
  end if;
  perform set_config('test.job', v_job::text, false);
  return concat_ws(' ', v_answer.verdict, v_answer.state, v_answer.other_worker);
end;
$$;
create function pg_temp.other(p_signatures jsonb, p_queues text[] default null, p_tasks text[] default null) returns void language sql as $$
  select trunkline.register_worker(
    p_worker => 'w2', p_queues => p_queues, p_tasks => p_tasks,
    p_detail => jsonb_strip_nulls(jsonb_build_object('signatures', p_signatures))
  )
$$;

select is(pg_temp.handed(), 'ok dead', 'alone, it is dead at once');
select is((t.job(current_setting('test.job')::uuid)).last_error ->> 'field', 'colour', 'with its error');
select is((t.job(current_setting('test.job')::uuid)).reason, 'not_retryable', 'and the usual reason');

select pg_temp.other('{"mail": "new"}') \g /dev/null
select is(pg_temp.handed(), 'ok scheduled w2', 'it waits for a worker with other code');
select is(
  (t.job(current_setting('test.job')::uuid)).reason,
  'field colour of the payload does not fit the code of w1; w2 has another version of mail',
  'which the reason names, with the field'
);
select pg_temp.other('{"mail": "old"}') \g /dev/null
select is(pg_temp.handed(), 'ok dead', 'one with the same code would fail as well');
select pg_temp.other(null) \g /dev/null
select is(pg_temp.handed(), 'ok dead', 'one that reports no signature may have the same code');
select pg_temp.other('{"mail": "new"}', p_queues => array['elsewhere']) \g /dev/null
select is(pg_temp.handed(), 'ok dead', 'one of another queue never gets it');
select pg_temp.other('{"mail": "new"}', p_queues => array['elsewhere', 'default'], p_tasks => array['mail']) \g /dev/null
select is(pg_temp.handed(), 'ok scheduled w2', 'one that names the queue and the task does');
select pg_temp.other('{"mail": "new"}', p_tasks => array['other']) \g /dev/null
select is(pg_temp.handed(), 'ok dead', 'one of other tasks does not');

select pg_temp.other('{"mail": "new"}') \g /dev/null
set session authorization trunkline_operator;
select trunkline.drain_worker(p_worker => 'w2') \g /dev/null
set session authorization trunkline_worker;
select is(pg_temp.handed(), 'ok dead', 'one that drains claims nothing');
select pg_temp.other('{"mail": "new"}') \g /dev/null
select trunkline.stop_worker(p_worker => 'w2') \g /dev/null
select is(pg_temp.handed(), 'ok dead', 'one that stopped is gone');
select pg_temp.other('{"mail": "new"}') \g /dev/null
select trunkline_test.move_time('11 seconds') \g /dev/null
select is(pg_temp.handed(), 'ok dead', 'one that missed two pulses counts as gone');
select trunkline.pulse(p_worker => 'w2', p_detail => '{"slots": 5}') \g /dev/null
select is(pg_temp.handed(), 'ok scheduled w2', 'its signatures outlive a pulse');

-- A signature has the payload, the result and the code.
select trunkline.register_worker(p_worker => 'w1', p_tasks => array['mail'], p_detail => '{"signatures": {"mail": "old:r:c"}}') \g /dev/null
select pg_temp.other('{"mail": "old:r:d"}') \g /dev/null
select is(pg_temp.handed(), 'ok dead', 'a payload does not fit other code with the same fingerprint either');
select is(
  pg_temp.handed(p_field => null, p_result => 'the result of step look'), 'ok scheduled w2',
  'a result may fit code that differs in nothing else'
);
select pg_temp.other('{"mail": "old:r:c"}') \g /dev/null
select is(pg_temp.handed(p_field => null, p_result => 'the result of step look'), 'ok dead', 'but not the same code');
select trunkline.register_worker(p_worker => 'w1', p_tasks => array['mail'], p_detail => '{"slots": 4, "signatures": {"mail": "old"}}') \g /dev/null
select pg_temp.other('{"mail": "new"}') \g /dev/null
select trunkline.pulse(p_worker => 'w2', p_detail => '{"slots": 5}') \g /dev/null

set session authorization trunkline_operator;
select results_eq(
  'select worker, detail, signatures from trunkline.workers order by worker',
  $$values ('w1', '{"slots": 4}'::jsonb, '{"mail": "old"}'::jsonb), ('w2', '{"slots": 5}', '{"mail": "new"}')$$,
  'the view of workers shows them, apart from the detail'
);
set session authorization trunkline_worker;
select is(
  t.refusal($$select trunkline.register_worker(p_worker => 'w3', p_detail => '{"signatures": ["mail"]}')$$) ->> 'key',
  'signatures', 'anything but an object is refused'
);

select * from finish();
