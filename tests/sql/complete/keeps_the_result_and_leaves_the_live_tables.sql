-- CP-45, CP-47, RF-48, RF-64, RF-72: a completed job keeps its result, and leaves the hot tables for the history.
\ir ../helpers/tools.sql
\ir ../../support/internals/internals.sql
select plan(10);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select t.started('mail') as one \gset
select t.started('mail') as two \gset
select trunkline_test.move_time('10 seconds') \g /dev/null
select results_eq(
  format(
    $$select job_id, attempt, verdict, state from trunkline.complete(
      p_worker => 'w1', p_jobs => array[%1$L, %2$L]::uuid[], p_attempts => array[1, 1], p_results => array['{"size": 5}', null]::jsonb[]
    )$$, :'two', :'one'
  ),
  format($$values (%L::uuid, 1, 'ok', 'completed'), (%L, 1, 'ok', 'completed')$$, :'two', :'one'),
  'each job of a batch has its own answer, in the order asked'
);
select is((t.job(:'two')).result, '{"size": 5}'::jsonb, 'the result is kept');
select is((t.job(:'one')).result, null, 'where there is one');
select is((t.job(:'two')).state, 'completed', 'the job is completed');
select is((t.job(:'two')).progress, 100, 'and all done');
select ok((t.job(:'two')).finished_at >= (t.job(:'two')).claimed_at + interval '10 seconds', 'finished ten seconds after its claim');
select is((t.job(:'two')).lease_expires_at, null, 'it has no lease any more');
select is((t.job(:'two')).worker, 'w1', 'but still tells who did it');

select is_empty('select t.live()', 'the tables of live jobs are empty');
select is((select count(*) from t.finished()), 2::bigint, 'finished jobs live elsewhere');

select * from finish();
