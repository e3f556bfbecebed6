-- reset_step deletes recorded steps of a job that does not run; a replay keeps steps unless it is fresh.
\ir ../helpers/tools.sql
select plan(14);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_max_attempts => 1) \g /dev/null
select t.started('mail') as one \gset
select trunkline.record_steps('w1', array_fill(:'one'::uuid, array[3]), array[1, 1, 1], array[1, 2, 3], array['a', 'a', 'b'], array['#1', '#2', '#1'],
  array[null, null, null]::bigint[], array['1', '2', '3']::jsonb[]) \g /dev/null
set session authorization trunkline_operator;
select is((t.refusal(format($$select trunkline.reset_step(%L, 'a')$$, :'one'))) ->> 'state', 'running', 'not while the job runs');
set session authorization trunkline_worker;
select trunkline.fail('w1', array[:'one']::uuid[], array[1], array['{"message": "no"}']::jsonb[], array[true]) \g /dev/null
set session authorization trunkline_operator;
select is((t.job(:'one')).state, 'dead', 'the job is dead');
select is((select count(*)::integer from trunkline.job_steps(:'one')), 3, 'and keeps its steps');
select is((t.refusal(format($$select trunkline.reset_step(%L, 'c')$$, :'one'))) - array['message', 'sqlstate', 'job'], '{"code": "unknown_recorded_step", "step": "c", "key": null}'::jsonb, 'an unknown step is refused');
select is(trunkline.reset_step(:'one', 'a', '#2', 'wrong page'), 1, 'one call of a step is reset');
select results_eq(
  format('select action, kind, object, reason from trunkline.operator_log order by log_id desc limit 1'),
  format($$values ('reset_step', 'job', %L, 'wrong page')$$, :'one'), 'with a line in the operator log'
);
select results_eq(format('select name, key from trunkline.job_steps(%L)', :'one'), $$values ('a', '#1'), ('b', '#1')$$, 'the others stay');
select is((trunkline.retry(:'one')).state, 'ready', 'a replay');
select is((select count(*)::integer from trunkline.job_steps(:'one')), 2, 'keeps the steps');
set session authorization trunkline_worker;
select job_id from trunkline.claim('w2') \g /dev/null
select trunkline.fail('w2', array[:'one']::uuid[], array[2], array['{"message": "no"}']::jsonb[], array[false]) \g /dev/null
set session authorization trunkline_operator;
select is((trunkline.retry_fresh(:'one')).state, 'ready', 'a fresh replay');
select is((select count(*)::integer from trunkline.job_steps(:'one')), 0, 'does not');
select is((t.refusal(format($$select trunkline.retry_fresh(%L)$$, :'one'))) ->> 'code', 'wrong_state', 'only a dead letter');
set session authorization trunkline_producer;
select is((t.refusal(format($$select trunkline.reset_step(%L, 'a')$$, :'one'))) ->> 'sqlstate', '42501', 'producers may not reset steps');
set session authorization trunkline_worker;
select is((t.refusal(format($$select * from trunkline.job_steps(%L)$$, :'one'))) ->> 'sqlstate', '42501', 'and workers may not read steps of other jobs');
select * from finish();
