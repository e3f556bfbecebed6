-- T19: a claim ends at most a hundred expired jobs, and passes over the others: unlimited, limited or sharing fairly.
\ir ../helpers/tools.sql
select plan(9);

set session authorization trunkline_operator;
select trunkline.set_limit('wide', '{"requests_per_minute": 100000}') \g /dev/null
select trunkline.set_limit('slots/{key}', '{"concurrency": 5}') \g /dev/null
select trunkline.set_limit('fair:share/{tenant}', '{"concurrency": 1000}') \g /dev/null
set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'plain') \g /dev/null
select trunkline.register_task(p_task => 'limited', p_limits => '{wide}') \g /dev/null
select trunkline.register_task(p_task => 'keyed', p_limits => '{"slots/{key}"}') \g /dev/null
select trunkline.register_task(p_task => 'shared', p_limits => '{"fair:share/{tenant}"}') \g /dev/null

create function pg_temp.fill(p_task text, p_expires_in interval, p_jobs integer) returns bigint
language sql as $$
  select count(*) from trunkline.enqueue_many(p_jobs => (
    select jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
      'task', p_task, 'tenant', 'acme', 'payload', '{"key": "k"}'::jsonb, 'expires_at', trunkline.clock() + p_expires_in
    )))
    from generate_series(1, p_jobs)
  ))
$$;
select pg_temp.fill(task, '1 minute', 150), pg_temp.fill(task, null, 1)
from unnest(array['plain', 'limited', 'keyed', 'shared']) as task \g /dev/null
select trunkline_test.move_time('2 minutes') \g /dev/null

set session authorization trunkline_worker;
create function pg_temp.started(p_task text) returns text
language sql as $$
  select string_agg(c.task || ' ' || (j.expires_at is null), ', ')
  from trunkline.claim(p_worker => 'w1', p_limit => 20, p_tasks => array[p_task]) as c
  join lateral trunkline.job(p_job => c.job_id) as j on true
$$;
create function pg_temp.left_over() returns bigint
language sql as $$
  select count(*) from trunkline.list_jobs(p_states => '{ready}', p_limit => 1000)
$$;
select is(pg_temp.started('shared'), 'shared true', 'of jobs that share fairly only the one without a deadline starts');
select is(pg_temp.left_over(), 503::bigint, 'the claim ended a hundred');
select is(pg_temp.started('keyed'), 'keyed true', 'so of those with slots of a key');
select is(pg_temp.started('limited'), 'limited true', 'of those with a wide limit');
select is(pg_temp.started('plain'), 'plain true', 'and of those without limits');
select is(pg_temp.left_over(), 200::bigint, 'each claim ended a hundred');
select is(pg_temp.started('plain'), null, 'nothing else starts');
select is(pg_temp.started('plain'), null, 'nor later');
select is(pg_temp.left_over(), 0::bigint, 'until all of them are ended');

select * from finish();
