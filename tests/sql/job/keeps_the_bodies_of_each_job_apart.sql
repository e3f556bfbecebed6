-- Large payloads and results of jobs of the same day are never mixed up, wherever the job is.
\ir ../helpers/tools.sql
\ir ../../support/internals/frozen.sql
select plan(12);

create function t.body(p_kind text, p_name text) returns jsonb language sql immutable as $$
  select jsonb_build_object(p_kind, p_name, 'filling', repeat(p_name, 3000))
$$;
-- Kind and name of payload and result of every job, as the view and as the function have them.
create table t.names (job_id uuid, name text);
grant all on t.names to public;
create function t.bodies() returns text[]
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select array_agg(concat_ws(' ', n.name || ':', j.state, j.payload ->> 'payload', j.result ->> 'result', d.payload ->> 'payload', d.result ->> 'result') order by n.name)
  from trunkline.jobs as j
  join t.names as n on n.job_id = j.job_id
  cross join lateral trunkline.job(p_job => j.job_id) as d
$$;
set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
set session authorization trunkline_producer;
insert into t.names
select (trunkline.enqueue(p_task => 'mail', p_payload => t.body('payload', n), p_unique_key => n)).job_id, n from unnest(array['a', 'b', 'c', 'd', 'e']) as n;
select is(t.bodies(), array['a: ready a a', 'b: ready b b', 'c: ready c c', 'd: ready d d', 'e: ready e e'], 'waiting');
set session authorization trunkline_worker;
select is(
  (select array_agg(n.name || ' ' || (c.payload ->> 'payload') order by n.name) from trunkline.claim(p_worker => 'w1', p_limit => 4) as c join t.names as n on n.job_id = c.job_id),
  array['a a', 'b b', 'c c', 'd d'], 'claimed'
);
select is(t.bodies(), array['a: running a a', 'b: running b b', 'c: running c c', 'd: running d d', 'e: ready e e'], 'running');
select trunkline.complete(
  p_worker => 'w1', p_jobs => array_agg(n.job_id order by n.name desc), p_attempts => array[1, 1], p_results => array[t.body('result', 'b'), t.body('result', 'a')]
) from t.names as n where n.name in ('a', 'b') \g /dev/null
select trunkline.fail(p_worker => 'w1', p_jobs => array_agg(n.job_id), p_attempts => array[1, 1], p_retryable => array[false, false])
from t.names as n where n.name in ('c', 'd') \g /dev/null
select is(t.bodies(), array['a: completed a a a a', 'b: completed b b b b', 'c: dead c c', 'd: dead d d', 'e: ready e e'], 'ended');
select is((select (t.job(job_id)).progress from t.names where name = 'a'), 100, 'a completed job is done');

set session authorization trunkline_operator;
select job_id as again from trunkline.retry(p_job => (select job_id from t.names where name = 'a')) \gset
select is((t.job(:'again')).payload, t.body('payload', 'a'), 'a retry of a finished job copies its payload');
select trunkline.discard(p_job => (select job_id from t.names where name = 'c')) \g /dev/null
select is(t.bodies(), array['a: completed a a a a', 'b: completed b b b b', 'd: dead d d', 'e: ready e e'], 'discarding one takes only its own');
select trunkline.acknowledge(p_job => (select job_id from t.names where name = 'd')) \g /dev/null
select trunkline.retry(p_job => (select job_id from t.names where name = 'd')) \g /dev/null
select is(t.bodies(), array['a: completed a a a a', 'b: completed b b b b', 'd: ready d d', 'e: ready e e'], 'a dead letter keeps it when it is replayed');
select trunkline.cancel(p_job => (select job_id from t.names where name = 'e')) \g /dev/null
select is((select (t.job(job_id)).progress from t.names where name = 'e'), null, 'a cancelled one is not done');
select is(t.bodies(), array['a: completed a a a a', 'b: completed b b b b', 'd: ready d d', 'e: cancelled e e'], 'so does a cancelled job');
-- After the retention of dead letters, only those that were acknowledged are gone, with their own payload.
set session authorization trunkline_worker;
insert into t.names values (t.dead('mail'), 'f');
select trunkline.claim(p_worker => 'w1', p_limit => 9) \g /dev/null
select trunkline.fail(p_worker => 'w1', p_jobs => array[n.job_id], p_attempts => array[2], p_retryable => array[false]) from t.names as n where n.name = 'd' \g /dev/null
set session authorization trunkline_operator;
select trunkline.acknowledge(p_job => (select job_id from t.names where name = 'f')) \g /dev/null
select trunkline_test.move_time('31 days') \g /dev/null
set session authorization trunkline_worker;
select trunkline.maintain_partitions() \g /dev/null
select is(
  (select array_agg(b order by b) from unnest(t.bodies()) as b where b like 'd:%' or b like 'f:%'),
  array['d: dead d d'], 'the sweep of dead letters leaves the others'
);
set session authorization trunkline_operator;
select is((select array_agg(n.name) from trunkline.dead_letters as d join t.names as n on n.job_id = d.job_id), array['d'], 'which stay until a person has seen them');

select * from finish();
