-- The keys of a share group start in turn, by what runs for each of them and its weight; a cap holds while others wait.
\ir ../helpers/tools.sql
\ir ../../support/internals/frozen.sql
select plan(22);

create function t.put(p_tenant text, p_jobs integer, p_more jsonb default '{}') returns void
language sql security definer set search_path = pg_catalog, pg_temp
as $$
  select trunkline.enqueue_many((
    select jsonb_agg(jsonb_build_object('task', 'fair', 'tenant', p_tenant, 'correlation_id', p_tenant || n) || p_more order by n) from generate_series(1, p_jobs) as n
  ))
$$;
-- Whose jobs a claim starts, in its order.
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
create function t.finish(p_names text[]) returns bigint
language sql security definer set search_path = pg_catalog, pg_temp
as $$
  select count(v.verdict) from (select array_agg(j.job_id) as jobs, array_agg(j.attempt) as attempts from trunkline.jobs as j where j.correlation_id = any(p_names) and j.state = 'running') as j,
    lateral trunkline.complete('w1', j.jobs, j.attempts) as v
$$;
create function t.all_running() returns text
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$ select string_agg(j.correlation_id, ' ' order by j.correlation_id) from trunkline.jobs as j where j.state = 'running' $$;
set session authorization trunkline_operator;
select trunkline.set_limit('pool', '{"concurrency": 6}'), trunkline.set_limit('fair:pool/{tenant}', '{}'), trunkline.set_limit('fair:pool/big', '{"weight": 2}'), trunkline.set_limit('fair:pool/capped', '{"share_cap": 1}'),
  trunkline.register_task('fair', p_limits => array['fair:pool/{tenant}', 'pool']), trunkline.register_task('plain') \g /dev/null
select t.put('one', 5), t.put('big', 5), t.put('capped', 5), t.put('few', 1) \g /dev/null
select is(
  t.claim(20),
  'one1 big1 capped1 few1 big2 one2',
  'in turn, by weight, up to the slots'
);
select is(
  t.claim(20),
  null,
  'nothing more'
);
select is(
  (select jsonb_agg(jsonb_build_array(b.name, b.in_use, b.waiting) order by b.name) from trunkline.buckets as b),
  '[["fair:pool/big", 2, 3], ["fair:pool/capped", 1, 4], ["fair:pool/few", 1, 0], ["fair:pool/one", 2, 3], ["pool", 6, 0]]',
  'in the view'
);
select is(
  t.finish(array['one1', 'big1']),
  '2',
  'two end'
);
select is(
  t.claim(20),
  'big3 one3',
  'those that run least come next'
);
select is(
  t.finish(array['one2', 'few1', 'big2']),
  '3',
  'and then'
);
select is(
  array[t.claim(1), t.claim(1), t.claim(1), t.claim(1)],
  '{big4,one4,big5,NULL}',
  'one at a time'
);
select is(
  t.all_running(),
  'big3 big4 big5 capped1 one3 one4',
  'who runs now'
);
select is(
  array[t.finish(array(select unnest(string_to_array(t.all_running(), ' '))))::text, t.claim(20), t.claim(20)],
  '{6,"capped2 one5","capped3 capped4 capped5"}',
  'a cap holds only while others wait'
);
select is(
  array[t.finish(array(select unnest(string_to_array(t.all_running(), ' '))))::text, t.claim(20)],
  '{5,NULL}',
  'the rest'
);
-- Priorities count first, and a group stands among other jobs where its oldest jobs do.
select t.put('a', 2), t.put('b', 2, '{"priority": 5}') \g /dev/null
select trunkline.enqueue('plain', p_correlation_id => 'plain') from (select t.put('c', 1)) as x \g /dev/null
select t.put('c', 2) \g /dev/null
select is(
  t.claim(20),
  'b1 b2 a1 c1 a2 plain c1',
  'priorities first'
);
select t.finish(array(select unnest(string_to_array(t.all_running(), ' ')))) \g /dev/null
select t.put('a', 2), t.put('b', 2, '{"queue": "other"}'), t.put('c', 2, '{"delay": "1 minute"}'), t.put('d', 2, '{"queue": "closed"}') \g /dev/null
select trunkline.pause_queue('closed') \g /dev/null
select is(
  t.claim(20, ', p_queues => array[''other'', ''closed'']'),
  'b1 b2',
  'of one queue'
);
select is(
  t.claim(20, ', p_tasks => array[''plain'']'),
  null,
  'of a task nobody asked for'
);
select is(
  t.claim(20),
  'c2 a1 a2',
  'of the others'
);
select is(
  array[t.finish(array['a1', 'a2', 'b1', 'b2'])::text, t.claim(20, ', p_limited => 0')],
  '{4,NULL}',
  'no limited job'
);
select trunkline_test.move_time('1 minute') \g /dev/null
select is(
  array[t.claim(20, ', p_limited => 1'), t.claim(20, ', p_limited => 1')],
  '{c1,c2}',
  'one limited job'
);
select trunkline.resume_queue('closed') \g /dev/null
select is(
  t.claim(20),
  'd1 d2',
  'of a queue that is open again'
);
-- Ageing turns the order of priorities around, in one claim of sixteen.
select t.draw(0.0624) \g /dev/null
select t.finish(array(select unnest(string_to_array(t.all_running(), ' ')))) \g /dev/null
select trunkline.enqueue('plain', p_correlation_id => 'p' || p, p_priority => p) from unnest(array[-9, -1, 0, 3, 7]) as p \g /dev/null
select trunkline.enqueue('plain', p_correlation_id => 'q' || p, p_priority => p, p_queue => 'aged') from unnest(array[-9, -1, 0, 3, 7]) as p \g /dev/null
select trunkline.age_queue('aged') \g /dev/null
select is(
  t.claim(3, ', p_queues => array[''default'']'),
  'p7 p3 p0',
  'a queue without ageing'
);
select is(
  t.claim(4, ', p_queues => array[''aged'']'),
  'q0 q3 q7 q-9',
  'and one with it'
);
select is(
  t.claim(20),
  'q-1 p-1 p-9',
  'both'
);
select t.draw(0.0625) \g /dev/null
select trunkline.enqueue('plain', p_correlation_id => 'q' || p, p_priority => p, p_queue => 'aged') from unnest(array[-9, 3, 0]) as p \g /dev/null
select is(
  t.claim(3),
  'q3 q0 q-9',
  'most claims take the highest first'
);
select is(
  (select array_agg(q.queue || ' ' || q.ageing order by q.queue) from trunkline.queues as q),
  '{"aged true","closed false","default false","other false"}',
  'switched off and on'
);

select * from finish();
