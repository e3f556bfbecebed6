-- RC-09, RC-31: heartbeats keep a job for four leases or the limit of its task, and no longer.
\ir ../helpers/tools.sql
select plan(9);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'run_tsa', p_lease => '30 minutes') \g /dev/null
select trunkline.register_task(p_task => 'quick', p_lease => '10 minutes', p_hard_limit => '1 minute') \g /dev/null
select t.started('run_tsa') as job \gset
select t.started('quick') as quick \gset

create function pg_temp.beat() returns text language sql volatile as $$
  select string_agg(h.verdict, ' ') from trunkline.heartbeat(p_worker => 'w1', p_jobs => array[current_setting('test.job')::uuid], p_attempts => array[1]) as h
$$;
select set_config('test.job', :'job', false) \g /dev/null
select trunkline_test.move_time('59 seconds') \g /dev/null
select is_empty('select * from trunkline.reclaim()', 'a limit below the lease: not yet over');
select trunkline_test.move_time('2 seconds') \g /dev/null
select results_eq('select task, reason from trunkline.reclaim()', $$values ('quick', 'hard_limit')$$, 'over after a minute');

-- Every 29 minutes is as good as every 15 seconds: the lease is never over.
select trunkline_test.move_time('27 minutes 59 seconds') \g /dev/null
select is(array[pg_temp.beat()], array['ok'], 'alive at 29 minutes');
select trunkline_test.move_time('29 minutes') \g /dev/null
select pg_temp.beat() as v \gset
select trunkline_test.move_time('29 minutes') \g /dev/null
select pg_temp.beat() as v \gset
select trunkline_test.move_time('29 minutes') \g /dev/null
select is(array[pg_temp.beat()], array['ok'], 'alive at 116 minutes');
select is((t.job(:'job')).lease_expires_at, (t.job(:'job')).hard_deadline, 'but its lease ends with the hard limit');
select trunkline_test.move_time('3 minutes 50 seconds') \g /dev/null
select is_empty('select * from trunkline.reclaim()', 'not before two hours');
select trunkline_test.move_time('11 seconds') \g /dev/null
select is(array[pg_temp.beat()], array['lost'], 'then a heartbeat says that it is lost');
select results_eq('select task, reason from trunkline.reclaim()', $$values ('run_tsa', 'hard_limit')$$, 'and the job is taken back for that reason');
select is((t.job(:'job')).last_error ->> 'message', 'the attempt ran longer than its hard limit', 'which its error tells');

select * from finish();
