-- overview 6.10: a job handed over waits 60 s, doubling to 15 minutes, without a failure; after 20 in a row it is reported, or dead where its task says so.
\ir ../helpers/tools.sql
select plan(13);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select trunkline.register_task(p_task => 'strict', p_dead_when_deferred => true) \g /dev/null
select trunkline.register_worker(
  p_worker => w.worker, p_pulse_interval => '1 hour',
  p_detail => jsonb_build_object('signatures', jsonb_build_object('mail', w.worker, 'strict', w.worker))
)
from (values ('w1'), ('w2')) as w (worker) \g /dev/null

-- Claims the job of a task and hands it over so many times, with the clock at its due time each time; tells the waits.
create function pg_temp.handed(p_task text, p_times integer) returns text language plpgsql as $$
declare
  v_job record;
  v_last trunkline.handover;
  v_waits numeric[];
begin
  for v_round in 1..p_times loop
    select c.job_id, c.attempt into strict v_job from trunkline.claim(p_worker => 'w1', p_tasks => array[p_task]) as c;
    select h.* into strict v_last from trunkline.hand_over(
      p_worker => 'w1', p_jobs => array[v_job.job_id], p_attempts => array[v_job.attempt], p_errors => array['{"field": "x"}'::jsonb]
    ) as h;
    exit when v_last.state = 'dead';
    -- Up to 30 s of it are jitter.
    v_waits := v_waits || floor(t.delay(v_job.job_id) / 60) * 60;
    perform trunkline_test.move_time(v_last.run_at - trunkline.clock());
    perform trunkline.pulse(p_worker => w.worker) from (values ('w1'), ('w2')) as w (worker);
  end loop;
  return concat_ws(' ', v_last.state, array_to_string(v_waits, ','));
end;
$$;
set session authorization trunkline_producer;
select job_id as job from trunkline.enqueue(p_task => 'mail', p_max_attempts => 1) \gset
set session authorization trunkline_worker;
select is(pg_temp.handed('mail', 6), 'scheduled 60,120,240,480,900,900', 'the waits double up to fifteen minutes');
select is((t.job(:'job')).failures || ' failures, ' || (t.job(:'job')).deferrals || ' deferrals', '0 failures, 6 deferrals', 'and count as deferrals only');
select is((t.event(:'job')).kind, 'released', 'the event says that it was handed back');
select is((t.event(:'job')).detail ->> 'reason', 'field x of the payload does not fit the code of w1; w2 has another version of mail', 'and why');
set session authorization trunkline_producer;
select is((select e.detail ->> 'reason' from trunkline.explain(p_job => :'job') as e where e.reason = 'scheduled'), (t.event(:'job')).detail ->> 'reason', 'explain says the same');

set session authorization trunkline_worker;
select pg_temp.handed('mail', 14) \g /dev/null
set session authorization trunkline_operator;
select ok((select h.ok from trunkline.health() as h where h."check" = 'deferred work'), 'twenty in a row are within the bounds');
set session authorization trunkline_worker;
select alike(pg_temp.handed('mail', 1), 'scheduled %', 'the next one lets it live');
set session authorization trunkline_operator;
select ok((select not h.ok from trunkline.health() as h where h."check" = 'deferred work'), 'and is reported');
set session authorization trunkline_producer;
select trunkline.cancel(p_job => :'job') \g /dev/null
select job_id as strict from trunkline.enqueue(p_task => 'strict') \gset
set session authorization trunkline_worker;
select alike(pg_temp.handed('strict', 20), 'scheduled %', 'a strict task allows twenty');
select is(pg_temp.handed('strict', 1), 'dead', 'and no more');
select is((t.job(:'strict')).reason, 'deferred_too_long', 'with that reason');

select t.started('mail') as running \gset
set session authorization trunkline_producer;
select trunkline.cancel(p_job => :'running') \g /dev/null
set session authorization trunkline_worker;
select is(
  (select h.verdict || ' ' || h.state from trunkline.hand_over(p_worker => 'w1', p_jobs => array[:'running']::uuid[], p_attempts => array[1]) as h),
  'ok cancelled', 'one that is to be cancelled ends so'
);
select is(
  (select h.verdict from trunkline.hand_over(p_worker => 'w1', p_jobs => array[:'running']::uuid[], p_attempts => array[1]) as h),
  'lost', 'a stale attempt hands nothing over'
);

select * from finish();
