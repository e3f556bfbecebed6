-- A claim serves queues as given or by name, priorities, then age, whatever way it finds the jobs: all at once, by search, or from a position.
\ir ../helpers/tools.sql
\ir ../../support/internals/frozen.sql
select plan(25);

create function t.put(p_names text[], p_more jsonb default '{}') returns void
language sql security definer set search_path = pg_catalog, pg_temp
as $$ select trunkline.enqueue_many((select jsonb_agg(jsonb_build_object('task', 'mail', 'correlation_id', n.name) || p_more order by n.place) from unnest(p_names) with ordinality as n (name, place))) $$;
-- The names of claimed jobs, in order. A position is kept under a name.
create table t.positions (name text primary key, position jsonb);
create function t.claim(p_jobs integer, p_more text default '', p_position text default null) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_names text;
  v_position jsonb := (select coalesce(max(p.position::text), '{}')::jsonb from t.positions as p where p.name = p_position);
  v_rows integer;
begin
  execute format(
    'select string_agg(c.correlation_id, $1 order by c.place), (array_agg(c.position) filter (where c.position is not null))[1], count(c.position)
     from (select c.*, row_number() over () as place from trunkline.claim($2, p_limit => $3%s%s) as c) as c', p_more, case when p_position is not null then ', p_position => $4' else '' end
  )
  into v_names, v_position, v_rows using ' ', 'w1', p_jobs, v_position;
  if p_position is not null then
    insert into t.positions values (p_position, v_position) on conflict (name) do update set position = excluded.position;
    return concat_ws(' ', v_names, case when v_rows <> 1 then 'and ' || v_rows || ' positions' end);
  end if;
  return v_names;
end;
$$;
create function t.release(p_name text) returns void
language sql security definer set search_path = pg_catalog, pg_temp
as $$ select trunkline.release('w1', array[j.job_id], array[j.attempt]) from trunkline.jobs as j where j.correlation_id = p_name and j.state = 'running' $$;
create function t.state(p_names text[]) returns text[]
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$ select array_agg(j.correlation_id || ' ' || j.state || coalesce(' ' || j.reason, '') order by j.correlation_id) from trunkline.jobs as j where j.correlation_id = any(p_names) $$;
create function t.scene() returns void
language sql security definer set search_path = pg_catalog, pg_temp
as $$
  select t.put(array['z1', 'z2'], '{"queue": "z"}'), t.put(array['a1', 'a2'], '{"queue": "a"}'), t.put(array['m1'], '{"queue": "m"}'), t.put(array['a-low'], '{"queue": "a", "priority": -3}'), t.put(array['z-high'], '{"queue": "z", "priority": 9}'),
    t.put(array['a-fax'], '{"queue": "a", "task": "fax"}'), t.put(array['m-mine'], '{"queue": "m", "tenant": "mine"}'), t.put(array['a3'], '{"queue": "a"}')
$$;
set session authorization trunkline_operator;
select trunkline.register_task('mail'), trunkline.register_task('fax'), trunkline.register_task('noted', p_audit => true), trunkline.register_task('once', p_unique_until => 'claim') \g /dev/null
select t.scene() \g /dev/null
select is(
  t.claim(100),
  'a1 a2 a-fax a3 a-low m1 m-mine z-high z1 z2',
  'all of them'
);
select t.scene() \g /dev/null
select is(
  array[t.claim(3), t.claim(3), t.claim(3), t.claim(3)],
  '{"a1 a2 a-fax","a3 a-low m1","m-mine z-high z1",z2}',
  'in parts'
);
select t.scene() \g /dev/null
select is(
  array[t.claim(3, '', 'all'), t.claim(3, '', 'all'), t.claim(3, '', 'all'), t.claim(3, '', 'all'), t.claim(3, '', 'all')],
  '{"a1 a2 a-fax","a3 a-low m1","m-mine z-high z1",z2,""}',
  'from a position'
);
select t.scene() \g /dev/null
select is(
  array[t.claim(4, ', p_queues => array[''z'', ''a'']'), t.claim(100, ', p_queues => array[''z'', ''a'']')],
  '{"z-high z1 z2 a1","a2 a-fax a3 a-low"}',
  'of queues as they are given'
);
select is(
  t.claim(100),
  'm1 m-mine',
  'the other one'
);
select t.scene() \g /dev/null
select is(
  array[t.claim(4, ', p_queues => array[''z'', ''a'']', 'za'), t.claim(4, ', p_queues => array[''z'', ''a'']', 'za'), t.claim(4, ', p_queues => array[''z'', ''a'']', 'za')],
  '{"z-high z1 z2 a1","a2 a-fax a3 a-low",""}',
  'the same from a position'
);
select is(
  t.claim(100, '', 'za'),
  'm1 m-mine',
  'which is of no use for other queues'
);
select t.scene() \g /dev/null
select is(
  array[t.claim(1, ', p_tasks => array[''fax'']'), t.claim(100, ', p_tasks => array[''fax'']')],
  '{a-fax,NULL}',
  'of one task'
);
select is(
  array[t.claim(2, ', p_tasks => array[''mail'', ''none'']', 'mail'), t.claim(100, ', p_tasks => array[''mail'', ''none'']', 'mail')],
  '{"a1 a2","a3 a-low m1 m-mine z-high z1 z2"}',
  'of others'
);
select t.scene() \g /dev/null
set trunkline.tenant = 'mine';
select is(
  array[t.claim(1), t.claim(1, '', 'mine')],
  '{m-mine,""}',
  'of one tenant'
);
reset trunkline.tenant;
select is(
  t.claim(100),
  'a1 a2 a-fax a3 a-low m1 z-high z1 z2',
  'the rest'
);
-- What comes later is found from the position too: new, handed back, and of a higher priority.
select t.put(array['n1', 'n2']) \g /dev/null
select is(
  t.claim(1, '', 'n'),
  'n1',
  'new ones'
);
select t.release('n1') \g /dev/null
select t.put(array['n3']), t.put(array['n4'], '{"priority": 1}') \g /dev/null
select is(
  array[t.claim(2, '', 'n'), t.claim(9, '', 'n'), t.claim(9, '', 'n')],
  '{"n4 n1","n2 n3",""}',
  'the highest, then those handed back, then the oldest'
);
-- Due jobs become ready in a claim, in the order of their times; expired ones end.
select t.put(array['d3'], '{"delay": "3 seconds"}'), t.put(array['d1'], '{"delay": "1 second"}'), t.put(array['d2'], '{"delay": "2 seconds", "priority": 2}'), t.put(array['d9'], '{"delay": "9 seconds"}') \g /dev/null
select t.put(array['e1'], jsonb_build_object('delay', '2 seconds', 'expires_at', :'noon'::timestamptz + interval '3 seconds')), t.put(array['e2'], jsonb_build_object('delay', '2 seconds', 'expires_at', :'noon'::timestamptz + interval '4 seconds')) \g /dev/null
select is(
  t.claim(1, '', 'd'),
  '',
  'what is due now'
);
select trunkline_test.move_time('3 seconds') \g /dev/null
select is(
  array[t.claim(2, '', 'd'), t.claim(9, '', 'd')],
  '{"d2 d1","e2 d3"}',
  'what is due later'
);
select is(
  t.state(array['e1', 'e2', 'd9']),
  '{"d9 scheduled","e1 cancelled expired","e2 running"}',
  'and what has expired'
);
select trunkline_test.move_time('6 seconds') \g /dev/null
select is(
  t.claim(9),
  'd9',
  'without a position'
);
-- Large payloads of several days.
select t.put(array['l1'], jsonb_build_object('payload', jsonb_build_object('x', repeat('1', 2000)))), trunkline_test.move_time('1 day') \g /dev/null
select t.put(array['l2'], jsonb_build_object('payload', jsonb_build_object('x', repeat('2', 2000)))), trunkline_test.move_time('1 day') \g /dev/null
select t.put(array['l3', 'l4'], jsonb_build_object('payload', jsonb_build_object('x', repeat('3', 2000)))), t.put(array['s']) \g /dev/null
set session authorization trunkline_worker;
select is(
  (select array_agg(c.correlation_id || ' ' || length(c.payload ->> 'x') || left(c.payload ->> 'x', 1) order by c.correlation_id) from trunkline.claim('w1', p_limit => 3) as c),
  '{"l1 20001","l2 20002","l3 20003"}',
  'come with the claim'
);
select is(
  (select array_agg(concat_ws(' ', c.correlation_id, length(c.payload ->> 'x') || left(c.payload ->> 'x', 1)) order by c.correlation_id) from trunkline.claim('w1', p_limit => 9) as c),
  '{"l4 20003",s}',
  'also of a single day'
);
-- Keys that are free from the claim on, and steps that are noted.
set session authorization trunkline_operator;
select t.put(array['k1'], '{"task": "once", "unique_key": "k"}'), t.put(array['k2'], '{"unique_key": "k"}'), t.put(array['n'], '{"task": "noted", "tenant": "mine"}') \g /dev/null
select is(
  t.claim(9),
  'k1 k2 n',
  'claimed'
);
select is(
  (select jsonb_agg(e.created order by e.place) from (select e.created, row_number() over () as place from trunkline.enqueue_many('[{"task": "once", "unique_key": "k"}, {"task": "mail", "unique_key": "k"}]') as e) as e),
  '[true, false]',
  'one key is free, the other is not'
);
select is(
  (select jsonb_agg(jsonb_build_array((t.job(e.job_id)).correlation_id, e.kind, e.to_state, e.attempt, e.tenant, e.worker)) from trunkline.events as e where e.kind = 'claimed'),
  '[["n", "claimed", "running", 1, "mine", "w1"]]',
  'events'
);
-- A paused queue, and maintenance.
select trunkline.pause_queue('a'), t.scene() \g /dev/null
select is(
  array[t.claim(2), t.claim(100, '', 'p')],
  '{m1,"m-mine z-high z1 z2"}',
  'of queues that are open'
);
select trunkline.set_setting('claims_enabled', 'false'), trunkline.resume_queue('a') \g /dev/null
select is(
  array[t.claim(2), t.claim(100, '', 'p')],
  '{NULL,""}',
  'of none'
);
select trunkline.set_setting('claims_enabled', null) \g /dev/null
select is(
  t.claim(100),
  'a1 a2 a-fax a3 a-low',
  'of all'
);

select * from finish();
