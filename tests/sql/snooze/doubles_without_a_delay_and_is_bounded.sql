-- CP-44, RF-67: without a delay a job waits 60 s, doubling to 15 minutes; too often or for too long kills it only where its task says so.
\ir ../helpers/tools.sql
select plan(10);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select trunkline.register_task(p_task => 'strict', p_dead_when_deferred => true) \g /dev/null

-- Snoozes the job of a task so many times, each time after it was claimed again; tells the waits.
create function pg_temp.snoozed(p_task text, p_times integer, p_delay interval default null) returns text language plpgsql as $$
declare
  v_job record;
  v_last trunkline.verdict;
  v_waits numeric[];
begin
  for v_round in 1..p_times loop
    select c.job_id, c.attempt into v_job from trunkline.claim(p_worker => 'w1', p_tasks => array[p_task]) as c;
    select v.* into v_last from trunkline.snooze(
      p_worker => 'w1', p_jobs => array[v_job.job_id], p_attempts => array[v_job.attempt], p_delays => array[p_delay], p_jitter => false
    ) as v;
    exit when v_last.state = 'dead';
    v_waits := v_waits || round(t.delay(v_job.job_id));
    perform trunkline_test.move_time(v_last.run_at - trunkline.clock());
  end loop;
  return concat_ws(' ', v_last.state, array_to_string(v_waits, ','));
end;
$$;
set session authorization trunkline_producer;
select job_id as lax from trunkline.enqueue(p_task => 'mail') \gset
select job_id as often from trunkline.enqueue(p_task => 'strict') \gset
set session authorization trunkline_worker;
select is(pg_temp.snoozed('mail', 7), 'scheduled 60,120,240,480,900,900,900', 'the waits double up to fifteen minutes');
select is((t.job(:'lax')).deferrals, 7, 'seven deferrals');
select is(right(pg_temp.snoozed('strict', 20, '0'), 9), '0,0,0,0,0', 'twenty deferrals in a row are within the bounds');
select is(pg_temp.snoozed('strict', 1), 'dead', 'the next one kills the job of a strict task');
select is((t.job(:'often')).reason, 'deferred_too_long', 'with that reason');
select is((t.job(:'often')).failures || ' failures, ' || (t.job(:'often')).deferrals || ' deferrals', '0 failures, 21 deferrals', 'and no failure');
select is(pg_temp.snoozed('mail', 20, '0'), 'scheduled ' || repeat('0,', 19) || '0', 'others live on');
select is((select over ->> 'over_bounds' from (select (t.event(:'lax')).detail) as e (over)), 'true', 'with an event that says so');

set session authorization trunkline_producer;
select job_id as long from trunkline.enqueue(p_task => 'strict', p_priority => 5) \gset
set session authorization trunkline_worker;
select is(pg_temp.snoozed('strict', 2, '12 hours 1 minute'), 'scheduled 43260,43260', 'twice half a day');
select is(pg_temp.snoozed('strict', 1), 'dead', 'more than a day without progress kills it as well');

select * from finish();
