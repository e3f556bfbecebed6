-- once: one attempt runs the step, the others suspend until its result is recorded; a lost holder is replaced.
\ir ../helpers/tools.sql
\ir ../../support/internals/internals.sql
select plan(12);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select t.started('mail') as one \gset
select t.started('mail') as two \gset
select t.started('mail') as alone \gset
select t.join_workflow(array[:'one', :'two']::uuid[]) \g /dev/null
select is((w).outcome, 'run', 'the first attempt runs the step') from trunkline.begin_once('w1', :'one', 1, 1, 'base') as w;
select is((w).outcome, 'wait', 'the second waits') from trunkline.begin_once('w1', :'two', 1, 1, 'base') as w;
select is((w).outcome, 'run', 'a job without a workflow runs its own') from trunkline.begin_once('w1', :'alone', 1, 1, 'base') as w;
select is(v.state, 'scheduled', 'suspended, to check again later') from trunkline.suspend('w1', array[:'two']::uuid[], array[1]) as v;
select is(trunkline.record_once('w1', :'one', 1, 'base', '{"x": 1}'), 'ok', 'the result is recorded');
select is((t.job(:'two')).state, 'ready', 'and resumes the waiting job');
select is(trunkline.record_once('w1', :'one', 1, 'base', '{"x": 1}'), 'ok', 'a repeated call is accepted');
select job_id from trunkline.claim('w2') \g /dev/null
select is((w).outcome || (w).result, 'over{"x": 1}', 'the second receives the result') from trunkline.begin_once('w2', :'two', 2, 1, 'base') as w;
select is((w).outcome, 'run', 'of another step') from trunkline.begin_once('w1', :'one', 1, 1, 'next') as w;
select trunkline.fail('w1', array[:'one']::uuid[], array[1], array['{"message": "no"}']::jsonb[], array[true], array[interval '1 hour']) \g /dev/null
select is((w).outcome, 'run', 'a holder that failed is replaced') from trunkline.begin_once('w2', :'two', 2, 1, 'next') as w;
select trunkline_test.move_time('1 hour');
select job_id from trunkline.claim('w3') \g /dev/null
select is((w).outcome, 'wait', 'and waits itself when it is back') from trunkline.begin_once('w3', :'one', 2, 1, 'next') as w;
select is((t.refusal(format($$select trunkline.record_once('w1', %L, 1, 'next', '1')$$, :'one'))) ->> 'code', 'stale_attempt', 'a stale attempt records nothing');
select * from finish();
