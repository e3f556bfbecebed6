-- TA-33, CP-44: a job that workers hand back before it started is ready at once however often, and nothing is counted.
\ir ../helpers/tools.sql
select plan(5);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_backoff => '{"base": 0}') \g /dev/null
select t.started('mail') as job \gset
create function pg_temp.hand_back(p_attempt integer) returns text language plpgsql as $$
declare
  v_state text;
begin
  select r.state into v_state
  from trunkline.release(
    p_worker => 'w1', p_jobs => array[current_setting('test.job')::uuid], p_attempts => array[p_attempt], p_unstarted => true
  ) as r;
  perform trunkline.claim(p_worker => 'w1');
  return v_state;
end;
$$;
select set_config('test.job', :'job', false) \g /dev/null
select is(
  (select array_agg(pg_temp.hand_back(n) order by n) from generate_series(1, 20) as n),
  array_fill('ready'::text, array[20]),
  'twenty times it is ready at once'
);
select is((t.job(:'job')).deferrals, 0, 'and never put off');
select is((t.job(:'job')).failures, 0, 'without a failure');
select is((t.job(:'job')).attempt, 21, 'each claim is an attempt of its own, so that a late word is fenced');
select is(
  (select r.verdict from trunkline.release(p_worker => 'w1', p_jobs => array[:'job']::uuid[], p_attempts => array[3], p_unstarted => true) as r),
  'lost', 'a stale attempt hands nothing back'
);

select * from finish();
