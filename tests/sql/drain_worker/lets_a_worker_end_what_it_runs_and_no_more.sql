-- CP-65, RF-72: a draining worker claims nothing more, is told so by its pulse, and ends what it runs.
\ir ../helpers/tools.sql
select plan(9);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select trunkline.register_worker(p_worker => 'w1') \g /dev/null
select trunkline.register_worker(p_worker => 'w2') \g /dev/null
select t.started('mail') as running \gset
set session authorization trunkline_producer;
select job_id as waiting from trunkline.enqueue(p_task => 'mail') \gset
set session authorization trunkline_worker;
select is(trunkline.pulse(p_worker => 'w1'), 'active', 'a worker is active at first');
select is(t.refusal($$select trunkline.drain_worker(p_worker => 'w2')$$) ->> 'sqlstate', '42501', 'a worker may not drain another');

set session authorization trunkline_operator;
select is(trunkline.drain_worker(p_worker => 'w1'), 'draining', 'an operator may');
select is(t.refusal($$select trunkline.drain_worker(p_worker => 'w9')$$) ->> 'code', 'unknown_worker', 'if it exists');

set session authorization trunkline_worker;
select is_empty($$select * from trunkline.claim(p_worker => 'w1')$$, 'it claims nothing more');
select is(trunkline.pulse(p_worker => 'w1'), 'draining', 'its pulse tells it why');
select is((select verdict from trunkline.complete(p_worker => 'w1', p_jobs => array[:'running']::uuid[], p_attempts => array[1])), 'ok', 'it ends what it runs');
select results_eq($$select job_id from trunkline.claim(p_worker => 'w2')$$, array[:'waiting']::uuid[], 'the others work on');
select trunkline.register_worker(p_worker => 'w1') \g /dev/null
select is(trunkline.pulse(p_worker => 'w1'), 'active', 'started anew it is active again');

select * from finish();
