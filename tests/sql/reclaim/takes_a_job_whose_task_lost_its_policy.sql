-- RC-06: a running job whose task has no row any more, which only a hand in the tables can bring about, is not exempt.
\ir ../helpers/tools.sql
\ir ../../support/internals/internals.sql
select plan(5);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select t.started('mail', 'w1') as lost \gset
select t.started('mail', 'w2') as failed \gset
select t.started('mail', 'w3') as snoozed \gset

select t.remove_tasks() \g /dev/null

set session authorization trunkline_operator;
select is(count(*), 3::bigint, 'the monitor shows all three') from trunkline.stale_monitor;

set session authorization trunkline_worker;
select is(state, 'scheduled', 'it can fail') from trunkline.fail(p_worker => 'w2', p_jobs => array[:'failed']::uuid[], p_attempts => array[1]);
select is(state, 'scheduled', 'it can be put off') from trunkline.snooze(p_worker => 'w3', p_jobs => array[:'snoozed']::uuid[], p_attempts => array[1]);
select trunkline_test.move_time('301 seconds') \g /dev/null
select is(array_agg(job_id), array[:'lost']::uuid[], 'and it is reclaimed after the default lease') from trunkline.reclaim();
select is((t.job(:'lost')).state, 'scheduled', 'to run again');

select * from finish();
