-- CP-34, RC-12, RC-21, RF-69: a job lost as often as it may be is dead: there is no endless loop.
\ir ../helpers/tools.sql
select plan(9);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_lease => '60 seconds', p_max_attempts => 2) \g /dev/null
set session authorization trunkline_producer;
select job_id as job from trunkline.enqueue(p_task => 'mail', p_unique_key => 'k') \gset
set session authorization trunkline_worker;
select trunkline.claim(p_worker => 'w1') \g /dev/null
select trunkline_test.move_time('61 seconds') \g /dev/null
select trunkline.reclaim() \g /dev/null
select is((t.job(:'job')).state, 'scheduled', 'after the first loss it is tried again');
select trunkline_test.move_time('61 seconds') \g /dev/null
select trunkline.claim(p_worker => 'w2') \g /dev/null
select trunkline_test.move_time('61 seconds') \g /dev/null
select results_eq(
  'select state, worker, failures, reason from trunkline.reclaim()',
  $$values ('dead', 'w2', 2, 'attempts_exhausted')$$,
  'after the second, of two, it is dead'
);
select is((t.job(:'job')).state, 'dead', 'the job is dead');
select is((t.job(:'job')).worker, 'w2', 'the last worker is kept');
select isnt((t.job(:'job')).finished_at, null, 'with the time of death');
select is((t.job(:'job')).last_error ->> 'type', 'lease_expired', 'and its last error');
set session authorization trunkline_operator;
select is((select to_state from trunkline.reclaim_history limit 1), 'dead', 'the history tells it too');
select is((select reason || ' ' || failures || ' ' || max_attempts from trunkline.dead_letters), 'attempts_exhausted 2 2', 'it is among the dead letters');
select is((trunkline.enqueue(p_task => 'mail', p_unique_key => 'k')).created, true, 'and holds its unique key no longer');

select * from finish();
