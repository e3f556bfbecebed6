-- RC-21, CP-34: a job whose workers died three times is dead although it has attempts left; the limit is the task's or a setting.
\ir ../helpers/tools.sql
select plan(9);

set session authorization trunkline_operator;
select trunkline.set_setting(p_name => 'reclaim_jitter', p_value => '0 seconds') \g /dev/null
set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'bomb', p_lease => '60 seconds', p_max_attempts => 50) \g /dev/null
select trunkline.register_task(p_task => 'mine', p_lease => '60 seconds', p_max_attempts => 50, p_crash_limit => 1) \g /dev/null
set session authorization trunkline_producer;
select job_id as job from trunkline.enqueue(p_task => 'bomb') \gset

set session authorization trunkline_worker;
create function pg_temp.die(p_worker text, p_task text) returns text language plpgsql as $$
begin
  perform trunkline.register_worker(p_worker => p_worker);
  perform trunkline.claim(p_worker => p_worker, p_tasks => array[p_task]);
  perform trunkline_test.move_time('11 seconds');
  return (select state || ' ' || reason from trunkline.reclaim());
end;
$$;
select is(pg_temp.die('w1', 'bomb'), 'scheduled worker_gone', 'the first worker dies');
select is((t.job(:'job')).crashes, 1, 'which is counted');
select is(pg_temp.die('w2', 'bomb'), 'scheduled worker_gone', 'the second');

-- A lease that ran out under a living worker is a loss, not a death.
select trunkline.claim(p_worker => 'unregistered') \g /dev/null
select trunkline_test.move_time('61 seconds') \g /dev/null
select trunkline.reclaim() \g /dev/null
select is((t.job(:'job')).crashes || ' crashes, ' || (t.job(:'job')).failures || ' failures', '2 crashes, 3 failures', 'silence alone is no crash');

select is(pg_temp.die('w3', 'bomb'), 'dead worker_killer', 'with the third death the job is put aside');
select is((t.job(:'job')).reason, 'worker_killer', 'with that reason');
select is((t.job(:'job')).failures, 4, 'long before its fifty attempts');

set session authorization trunkline_operator;
select trunkline.retry(p_job => :'job') \g /dev/null
select is((t.job(:'job')).crashes, 0, 'a replay forgives them');
select trunkline.enqueue(p_task => 'mine') \g /dev/null
set session authorization trunkline_worker;
select is(pg_temp.die('w4', 'mine'), 'dead worker_killer', 'a task may have a limit of its own');

select * from finish();
