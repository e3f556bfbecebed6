-- T19: a claim ends at most a hundred expired jobs, and passes over the others: unlimited, limited or sharing fairly.
\ir ../helpers/tools.sql
select plan(9);

create function t.left_over() returns bigint
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select count(*) from trunkline.list_jobs(p_states => '{ready}', p_limit => 1000);
end;

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
      'task', p_task, 'tenant', 'acme', 'expires_at', trunkline.clock() + p_expires_in,
      'payload', jsonb_build_object('key', 'k', 'expires', p_expires_in is not null)
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
  select string_agg(c.task || ' ' || (c.payload ->> 'expires'), ', ')
  from trunkline.claim(p_worker => 'w1', p_limit => 20, p_tasks => array[p_task]) as c
$$;
select is(pg_temp.started('plain'), 'plain false', 'of jobs without limits only the one without a deadline starts');
select is(t.left_over(), 503::bigint, 'the claim ended a hundred');
select is(pg_temp.started('limited'), 'limited false', 'so of those with a wide limit');
select is(pg_temp.started('keyed'), 'keyed false', 'of those with slots of a key');
select is(pg_temp.started('shared'), 'shared false', 'and of those that share fairly');
select is(t.left_over(), 200::bigint, 'each claim ended a hundred');
select is(pg_temp.started('plain'), null, 'nothing else starts');
select is(pg_temp.started('plain'), null, 'nor later');
select is(t.left_over(), 0::bigint, 'until all of them are ended');

select * from finish();
