-- A claim takes limited jobs in the order of queues, priorities and age as far as each fits, and charges each its own cost.
\ir ../helpers/tools.sql
\ir ../../support/internals/frozen.sql
select plan(20);

create function t.put(p_task text, p_names text[], p_costs jsonb[], p_more jsonb default '{}') returns void
language sql security definer set search_path = pg_catalog, pg_temp
as $$
  select trunkline.enqueue_many((
    select jsonb_agg(jsonb_build_object('task', p_task, 'correlation_id', n.name, 'cost', n.cost) || p_more order by n.place) from unnest(p_names, p_costs) with ordinality as n (name, cost, place)
  ))
$$;
create function t.claim(p_jobs integer, p_more text default '') returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_names text;
begin
  execute format('select string_agg(c.correlation_id, $1 order by c.place) from (select c.correlation_id, row_number() over () as place from trunkline.claim($2, p_limit => $3%s) as c where c.job_id is not null) as c', p_more)
  into v_names using ' ', 'w1', p_jobs;
  return v_names;
end;
$$;
create function t.finish() returns void
language sql security definer set search_path = pg_catalog, pg_temp
as $$ select trunkline.complete('w1', array_agg(j.job_id), array_agg(j.attempt)) from trunkline.jobs as j where j.state = 'running' having count(*) > 0 $$;
create function t.charged() returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$ select jsonb_object_agg(b.name, jsonb_build_array(b.in_use, b.requests_of_minute, b.tokens_of_minute, b.spent)) from trunkline.buckets as b $$;
set session authorization trunkline_operator;
select
  trunkline.set_limit('api', '{"tokens_per_minute": 100, "requests_per_minute": 20}'), trunkline.set_limit('slots', '{"concurrency": 3}'), trunkline.set_limit('pages', '{"quota": 50, "quota_unit": "pages", "quota_period": "day"}'),
  trunkline.set_limit('key/{key}', '{"tokens_per_minute": 50, "concurrency": 2}'),
  trunkline.register_task('api', p_limits => array['api']), trunkline.register_task('all', p_limits => array['slots', 'api', 'pages']), trunkline.register_task('key', p_limits => array['key/{key}']), trunkline.register_task('plain') \g /dev/null
select t.put('api', array['a60', 'b50', 'c30', 'd10'], array['{"tokens": 60}', '{"tokens": 50, "requests": 3}', '{"tokens": 30}', '{"tokens": 10}']::jsonb[]) \g /dev/null
select t.put('api', array['low20'], array['{"tokens": 20}']::jsonb[], '{"priority": -5}'), t.put('api', array['high25'], array['{"tokens": 25}']::jsonb[], '{"priority": 5}'), t.put('api', array['there15'], array['{"tokens": 15, "units": 4}']::jsonb[], '{"queue": "there"}') \g /dev/null
select is(
  t.claim(10),
  'high25 a60',
  'as far as they fit, in their order'
);
select is(
  t.charged(),
  '{"api": [0, 2, 85, null]}',
  'each at its cost'
);
select is(
  t.claim(10),
  null,
  'nothing more'
);
select t.finish(), trunkline_test.move_time('62 seconds') \g /dev/null
select is(
  t.claim(10, ', p_queues => array[''there'']'),
  'there15',
  'of one queue'
);
select is(
  t.claim(2),
  'b50 c30',
  'and the rest, two at most'
);
select is(
  t.claim(10),
  null,
  'then the others'
);
select is(
  t.charged(),
  '{"api": [0, 5, 95, null]}',
  'charged'
);
select t.finish(), trunkline_test.move_time('62 seconds') \g /dev/null
select is(
  t.claim(10),
  'd10 low20',
  'what is left'
);
select t.finish(), trunkline_test.move_time('62 seconds') \g /dev/null
-- Jobs of three limits, among others without any.
select t.put('all', array['x1', 'x2', 'x3', 'x4', 'x5'], array['{"tokens": 10, "units": 20}', '{"tokens": 20, "units": 20, "requests": 2}', '{"tokens": 90}', '{"tokens": 5, "units": 10}', '{"tokens": 5, "units": 1}']::jsonb[]) \g /dev/null
select trunkline.enqueue('plain', p_correlation_id => 'p1'), trunkline.enqueue('plain', p_correlation_id => 'p2', p_priority => 3) \g /dev/null
select t.put('all', array['y1'], array['{"tokens": 1, "units": 1}']::jsonb[], '{"priority": 4}'), t.put('api', array['z1'], array['{"tokens": 7}']::jsonb[]) \g /dev/null
select is(
  t.claim(20),
  'y1 p2 x1 x2 p1 z1',
  'room in all three'
);
select is(
  t.charged(),
  '{"api": [0, 5, 38, null], "pages": [0, 0, 0, 41], "slots": [3, 0, 0, null]}',
  'charged to all three'
);
select is(
  t.claim(20),
  null,
  'none while slots are taken'
);
select t.finish() \g /dev/null
select is(
  t.claim(20),
  'x5',
  'after they ended'
);
select is(
  t.charged(),
  '{"api": [0, 6, 43, null], "pages": [0, 0, 0, 42], "slots": [1, 0, 0, null]}',
  'up to the quota'
);
select t.finish(), trunkline_test.move_time('62 seconds') \g /dev/null
select is(
  t.claim(20),
  'x3',
  'a minute later'
);
select t.finish(), trunkline_test.move_time('62 seconds') \g /dev/null
select trunkline.cancel(j.job_id) from trunkline.jobs as j where j.state = 'ready' \g /dev/null
-- Many keys, each with its own order and room.
select t.put('key', array['a1', 'a2', 'a3', 'a4'], array['{"tokens": 30}', '{"tokens": 20}', '{"tokens": 20}', '{"tokens": 10}']::jsonb[], '{"payload": {"key": "a"}}'), t.put('key', array['b1', 'b2'], array['{"tokens": 40}', '{"tokens": 20}']::jsonb[], '{"payload": {"key": "b"}}'),
  t.put('key', array['c1', 'c2', 'c3'], array['{"tokens": 1}', '{"tokens": 1}', '{"tokens": 1}']::jsonb[], '{"payload": {"key": "c"}, "priority": 2}') \g /dev/null
select is(
  t.claim(20),
  'c1 c2 b1 a1 a2',
  'each key by its own room'
);
select is(
  t.charged() - 'api' - 'slots' - 'pages',
  '{"key/a": [2, 2, 50, null], "key/b": [1, 1, 40, null], "key/c": [2, 2, 2, null]}',
  'as charged'
);
select t.finish() \g /dev/null
select is(
  t.claim(20),
  'c3',
  'slots alone'
);
select t.finish(), trunkline_test.move_time('62 seconds') \g /dev/null
select is(
  t.claim(1),
  'b2',
  'one'
);
select is(
  t.claim(2),
  'a3 a4',
  'two more'
);
select is(
  t.claim(5, ', p_position => ''{}'''),
  null,
  'kept in place by a position'
);

select * from finish();
