-- RF-68, CP-44: a job that is given back five times in a row waits before the next attempt, so that a deadlock does not spin.
\ir ../helpers/tools.sql
select plan(9);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_backoff => '{"base": 0}') \g /dev/null
select t.started('mail') as job \gset
create function pg_temp.give_back(p_attempt integer) returns text language plpgsql as $$
declare
  v_state text;
begin
  select r.state into v_state
  from trunkline.release(p_worker => 'w1', p_jobs => array[current_setting('test.job')::uuid], p_attempts => array[p_attempt]) as r;
  perform trunkline.claim(p_worker => 'w1');
  return v_state;
end;
$$;
select set_config('test.job', :'job', false) \g /dev/null
select is(
  (select array_agg(pg_temp.give_back(n) order by n) from generate_series(1, 5) as n),
  array_fill('ready'::text, array[5]),
  'five times it is ready at once'
);
select is((t.job(:'job')).state || ' ' || (t.job(:'job')).attempt, 'running 6', 'and claimed again');
select is(pg_temp.give_back(6), 'scheduled', 'the sixth time it has to wait');
select ok(t.delay(:'job') between 900 and 930, 'as a job deferred for the sixth time');
select is_empty($$select * from trunkline.claim(p_worker => 'w1')$$, 'nobody claims it before');
select is((t.job(:'job')).failures, 0, 'still without a failure');

-- An attempt that ends otherwise begins a new row.
select trunkline_test.move_time('1000 seconds') \g /dev/null
select trunkline.claim(p_worker => 'w1') \g /dev/null
select trunkline.fail(p_worker => 'w1', p_jobs => array[:'job']::uuid[], p_attempts => array[7]) \g /dev/null
select is((t.job(:'job')).deferrals, 0, 'a failure ends the row');
select trunkline.claim(p_worker => 'w1') \g /dev/null
select is(pg_temp.give_back(8), 'ready', 'after it the job may be given back at once again');

set session authorization trunkline_operator;
select trunkline.set_setting(p_name => 'max_immediate_releases', p_value => '0') \g /dev/null
set session authorization trunkline_worker;
select is(pg_temp.give_back(9), 'scheduled', 'how often is a setting');

select * from finish();
