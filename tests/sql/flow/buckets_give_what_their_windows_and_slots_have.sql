-- A bucket gives what each of its windows and its slots have, no more, and the view, explain and the next claim agree about it.
\ir ../helpers/tools.sql
\ir ../../support/internals/frozen.sql
select plan(30);

-- All that a bucket shows, without what is empty.
create function t.bucket(p_name text) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select jsonb_strip_nulls(to_jsonb(b) || jsonb_build_object('free_at', t.after_noon(b.free_at), 'paused_until', t.after_noon(b.paused_until), 'refused_at', t.after_noon(b.refused_at)))
    - '{name,counted_up_to}'::text[]
  from trunkline.buckets as b where b.name = p_name
$$;
create function t.explained(p_task text) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select jsonb_agg(jsonb_build_array(e.reason, t.after_noon(e.until), e.detail))
  from (select j.job_id from trunkline.jobs as j where j.task = p_task and j.state in ('ready', 'blocked') order by j.job_id limit 1) as j
  cross join lateral trunkline.explain(p_job => j.job_id) as e
$$;
create function t.running(p_task text, p_most integer default 100) returns setof uuid
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$ select j.job_id from trunkline.jobs as j where j.task = p_task and j.state = 'running' order by j.job_id limit p_most $$;
-- How many jobs of a task a claim starts, up to ten.
create function pg_temp.started(p_task text) returns bigint language sql as $$
  select count(*) from trunkline.claim(p_worker => 'w1', p_limit => 10, p_tasks => array[p_task])
$$;
set session authorization trunkline_operator;
select
  trunkline.set_limit('rpm', '{"requests_per_minute": 3}'), trunkline.set_limit('rph', '{"requests_per_hour": 3}'),
  trunkline.set_limit('tpm', '{"tokens_per_minute": 100}'), trunkline.set_limit('tph', '{"tokens_per_hour": 100}'),
  trunkline.set_limit('slots', '{"concurrency": 3}'), trunkline.set_limit('all', '{"requests_per_minute": 5, "requests_per_hour": 8, "tokens_per_minute": 50, "tokens_per_hour": 70, "concurrency": 4}') \g /dev/null
set session authorization trunkline_producer;
select
  trunkline.register_task('rpm', p_limits => array['rpm']), trunkline.register_task('rph', p_limits => array['rph']), trunkline.register_task('tpm', p_limits => array['tpm'], p_cost => '{"tokens": 40}'),
  trunkline.register_task('tph', p_limits => array['tph'], p_cost => '{"tokens": 50}'), trunkline.register_task('slots', p_limits => array['slots']),
  trunkline.register_task('all', p_limits => array['all'], p_cost => '{"tokens": 10}'), trunkline.register_task('two', p_limits => array['rpm', 'slots']) \g /dev/null
select trunkline.enqueue_batch(t, (select jsonb_agg('{}'::jsonb) from generate_series(1, 20))) from unnest(array['rpm', 'rph', 'tpm', 'tph', 'slots', 'all']) as t \g /dev/null
set session authorization trunkline_worker;
select trunkline.register_worker('w1', p_pulse_interval => '1 hour') \g /dev/null
select is(
  array[pg_temp.started('rpm'), pg_temp.started('rph'), pg_temp.started('tpm'), pg_temp.started('tph'), pg_temp.started('slots'), pg_temp.started('all')],
  '{3,3,2,2,3,4}',
  'each gives what it has'
);
select is(
  array[pg_temp.started('rpm'), pg_temp.started('rph'), pg_temp.started('tpm'), pg_temp.started('tph'), pg_temp.started('slots'), pg_temp.started('all')],
  '{0,0,0,0,0,0}',
  'and nothing more at once'
);
select is(
  t.bucket('rpm'),
  '{"limit": "rpm", "in_use": 0, "free_at": "00:01:02", "refused": 0, "waiting": 17, "set_aside": 0, "tokens_of_hour": 0, "requests_of_hour": 3, "tokens_of_minute": 0, "requests_of_minute": 3}',
  'requests of a minute'
);
select is(
  t.bucket('rph'),
  '{"limit": "rph", "in_use": 0, "free_at": "01:00:02", "refused": 0, "waiting": 17, "set_aside": 0, "tokens_of_hour": 0, "requests_of_hour": 3, "tokens_of_minute": 0, "requests_of_minute": 3}',
  'requests of an hour'
);
select is(
  t.bucket('tpm'),
  '{"limit": "tpm", "in_use": 0, "refused": 0, "waiting": 18, "set_aside": 0, "tokens_of_hour": 80, "requests_of_hour": 2, "tokens_of_minute": 80, "requests_of_minute": 2}',
  'tokens of a minute'
);
select is(
  t.bucket('tph'),
  '{"limit": "tph", "in_use": 0, "free_at": "01:00:02", "refused": 0, "waiting": 18, "set_aside": 0, "tokens_of_hour": 100, "requests_of_hour": 2, "tokens_of_minute": 100, "requests_of_minute": 2}',
  'tokens of an hour'
);
select is(
  t.bucket('slots'),
  '{"limit": "slots", "in_use": 3, "refused": 0, "waiting": 17, "set_aside": 0, "tokens_of_hour": 0, "requests_of_hour": 0, "tokens_of_minute": 0, "requests_of_minute": 0}',
  'slots'
);
select is(
  t.bucket('all'),
  '{"limit": "all", "in_use": 4, "refused": 0, "waiting": 16, "set_aside": 0, "tokens_of_hour": 40, "requests_of_hour": 4, "tokens_of_minute": 40, "requests_of_minute": 4}',
  'all of them'
);
select is(
  t.explained('rpm'),
  '[["limit", "00:01:02", {"ahead": 0, "limit": "rpm", "status": "active", "tokens": 0, "requests": 1, "counted_up_to": 1000, "requests_left": 0}]]',
  'a job behind the requests of a minute'
);
select is(
  t.explained('rph'),
  '[["limit", "01:00:02", {"ahead": 0, "limit": "rph", "status": "active", "tokens": 0, "requests": 1, "counted_up_to": 1000, "requests_left": 0}]]',
  'a job behind the requests of an hour'
);
select is(
  t.explained('tpm'),
  '[["limit", "00:01:02", {"ahead": 0, "limit": "tpm", "status": "active", "tokens": 40, "requests": 1, "tokens_left": 20, "counted_up_to": 1000}]]',
  'a job behind the tokens of a minute'
);
select is(
  t.explained('tph'),
  '[["limit", "01:00:02", {"ahead": 0, "limit": "tph", "status": "active", "tokens": 50, "requests": 1, "tokens_left": 0, "counted_up_to": 1000}]]',
  'a job behind the tokens of an hour'
);
select is(
  t.explained('slots'),
  '[["limit", null, {"ahead": 0, "limit": "slots", "status": "active", "tokens": 0, "requests": 1, "slots_left": 0, "counted_up_to": 1000}]]',
  'a job behind slots'
);
select is(
  t.explained('all'),
  '[["limit", null, {"ahead": 0, "limit": "all", "status": "active", "tokens": 10, "requests": 1, "slots_left": 0, "tokens_left": 10, "counted_up_to": 1000, "requests_left": 1}]]',
  'a job behind all of them'
);
select trunkline_test.move_time('61 seconds') \g /dev/null
select is(
  array[pg_temp.started('rpm'), pg_temp.started('rph'), pg_temp.started('tpm'), pg_temp.started('tph'), pg_temp.started('slots'), pg_temp.started('all')],
  '{0,0,0,0,0,0}',
  'a minute and a second later the minute still counts'
);
select is(
  jsonb_build_array(t.bucket('rpm'), t.bucket('tpm')),
  '[{"limit": "rpm", "in_use": 0, "free_at": "00:01:02", "refused": 0, "waiting": 17, "set_aside": 0, "tokens_of_hour": 0, "requests_of_hour": 3, "tokens_of_minute": 0, "requests_of_minute": 3}, {"limit": "tpm", "in_use": 0, "refused": 0, "waiting": 18, "set_aside": 0, "tokens_of_hour": 80, "requests_of_hour": 2, "tokens_of_minute": 80, "requests_of_minute": 2}]',
  'in the view too'
);
select trunkline_test.move_time('1 second') \g /dev/null
select is(
  jsonb_build_array(t.bucket('rpm'), t.bucket('tpm'), t.bucket('all')),
  '[{"limit": "rpm", "in_use": 0, "refused": 0, "waiting": 17, "set_aside": 0, "tokens_of_hour": 0, "requests_of_hour": 3, "tokens_of_minute": 0, "requests_of_minute": 0}, {"limit": "tpm", "in_use": 0, "refused": 0, "waiting": 18, "set_aside": 0, "tokens_of_hour": 80, "requests_of_hour": 2, "tokens_of_minute": 0, "requests_of_minute": 0}, {"limit": "all", "in_use": 4, "refused": 0, "waiting": 16, "set_aside": 0, "tokens_of_hour": 40, "requests_of_hour": 4, "tokens_of_minute": 0, "requests_of_minute": 0}]',
  'from the next second on it does not'
);
select is(
  array[pg_temp.started('rpm'), pg_temp.started('rph'), pg_temp.started('tpm'), pg_temp.started('tph'), pg_temp.started('slots'), pg_temp.started('all')],
  '{3,0,2,0,0,0}',
  'and gives as much again'
);
-- Ends free slots, one for each.
select trunkline.complete('w1', array[j], array[1]) from t.running('slots', 1) as j \g /dev/null
select trunkline.fail('w1', array[j], array[1], p_retryable => array[false]) from t.running('slots', 1) as j \g /dev/null
select is(
  jsonb_build_array(t.bucket('slots'), pg_temp.started('slots'), t.bucket('slots')),
  '[{"limit": "slots", "in_use": 1, "refused": 0, "waiting": 17, "set_aside": 0, "tokens_of_hour": 0, "requests_of_hour": 0, "tokens_of_minute": 0, "requests_of_minute": 0}, 2, {"limit": "slots", "in_use": 1, "refused": 0, "waiting": 17, "set_aside": 0, "tokens_of_hour": 0, "requests_of_hour": 0, "tokens_of_minute": 0, "requests_of_minute": 0}]',
  'what ended frees its slot'
);
select trunkline.complete('w1', array_agg(j), array_agg(1)) from t.running('all') as j \g /dev/null
select is(
  jsonb_build_array(t.bucket('all'), pg_temp.started('all'), t.explained('all')),
  '[{"limit": "all", "in_use": 0, "refused": 0, "waiting": 16, "set_aside": 0, "tokens_of_hour": 40, "requests_of_hour": 4, "tokens_of_minute": 0, "requests_of_minute": 0}, 3, [["limit", "00:01:02", {"ahead": 0, "limit": "all", "status": "active", "tokens": 10, "requests": 1, "slots_left": 4, "tokens_left": 30, "counted_up_to": 1000, "requests_left": 4}]]]',
  'an end frees no window'
);
select trunkline_test.move_time('62 seconds') \g /dev/null
select is(
  jsonb_build_array(pg_temp.started('all'), t.bucket('all'), t.explained('all')),
  '[0, {"limit": "all", "in_use": 3, "free_at": "01:00:02", "refused": 0, "waiting": 13, "set_aside": 0, "tokens_of_hour": 70, "requests_of_hour": 7, "tokens_of_minute": 0, "requests_of_minute": 0}, [["limit", "01:01:01", {"ahead": 0, "limit": "all", "status": "active", "tokens": 10, "requests": 1, "slots_left": 1, "tokens_left": 0, "counted_up_to": 1000, "requests_left": 1}]]]',
  'the hour has the last word'
);
select trunkline_test.move_time('3476 seconds') \g /dev/null
select is(
  jsonb_build_array(t.bucket('rph'), t.bucket('tph'), pg_temp.started('rph'), pg_temp.started('tph')),
  '[{"limit": "rph", "in_use": 0, "free_at": "01:00:02", "refused": 0, "waiting": 17, "set_aside": 0, "tokens_of_hour": 0, "requests_of_hour": 3, "tokens_of_minute": 0, "requests_of_minute": 0}, {"limit": "tph", "in_use": 0, "free_at": "01:00:02", "refused": 0, "waiting": 18, "set_aside": 0, "tokens_of_hour": 100, "requests_of_hour": 2, "tokens_of_minute": 0, "requests_of_minute": 0}, 0, 0]',
  'an hour and a second after the first'
);
select trunkline_test.move_time('2 seconds') \g /dev/null
select is(
  jsonb_build_array(t.bucket('rph'), t.bucket('tph'), pg_temp.started('rph'), pg_temp.started('tph')),
  '[{"limit": "rph", "in_use": 0, "refused": 0, "waiting": 17, "set_aside": 0, "tokens_of_hour": 0, "requests_of_hour": 0, "tokens_of_minute": 0, "requests_of_minute": 0}, {"limit": "tph", "in_use": 0, "refused": 0, "waiting": 18, "set_aside": 0, "tokens_of_hour": 0, "requests_of_hour": 0, "tokens_of_minute": 0, "requests_of_minute": 0}, 3, 2]',
  'and then'
);
-- Jobs of two limits need room in both.
set session authorization trunkline_producer;
select trunkline.enqueue_batch('two', (select jsonb_agg('{}'::jsonb) from generate_series(1, 5))) \g /dev/null
set session authorization trunkline_worker;
select is(
  jsonb_build_array(pg_temp.started('slots'), pg_temp.started('two'), t.explained('two')),
  '[0, 0, [["limit", null, {"ahead": 14, "limit": "slots", "status": "active", "tokens": 0, "requests": 1, "slots_left": 0, "counted_up_to": 1000}]]]',
  'slots are used up'
);
select trunkline.complete('w1', array_agg(j), array_agg(1)) from t.running('slots') as j \g /dev/null
select is(
  jsonb_build_array(pg_temp.started('two'), t.bucket('rpm'), t.bucket('slots')),
  '[3, {"limit": "rpm", "in_use": 0, "refused": 0, "waiting": 14, "set_aside": 0, "tokens_of_hour": 0, "requests_of_hour": 3, "tokens_of_minute": 0, "requests_of_minute": 0}, {"limit": "slots", "in_use": 0, "refused": 0, "waiting": 20, "set_aside": 0, "tokens_of_hour": 0, "requests_of_hour": 0, "tokens_of_minute": 0, "requests_of_minute": 0}]',
  'a job needs room in both of its limits'
);
-- Lowered, switched off and raised.
set session authorization trunkline_operator;
select trunkline.set_limit('slots', '{"concurrency": 2}') \g /dev/null
select is(
  jsonb_build_array(t.bucket('slots'), t.explained('slots')),
  '[{"limit": "slots", "in_use": 3, "refused": 0, "waiting": 17, "set_aside": 0, "tokens_of_hour": 0, "requests_of_hour": 0, "tokens_of_minute": 0, "requests_of_minute": 0}, [["limit", null, {"ahead": 0, "limit": "slots", "status": "active", "tokens": 0, "requests": 1, "slots_left": -1, "counted_up_to": 1000}]]]',
  'below what runs'
);
select trunkline.set_limit('slots', '{}', 'maintenance', 'new cables') \g /dev/null
select is(
  t.explained('slots'),
  '[["limit", null, {"ahead": 0, "limit": "slots", "reason": "new cables", "status": "maintenance", "tokens": 0, "requests": 1, "slots_left": -1, "counted_up_to": 1000}]]',
  'a limit in maintenance'
);
select trunkline.set_limit('slots', '{"concurrency": 0}', 'active') \g /dev/null
select is(
  t.explained('slots'),
  '[["limit", null, {"ahead": 0, "limit": "slots", "status": "active", "tokens": 0, "requests": 1, "slots_left": -3, "counted_up_to": 1000}]]',
  'a limit of nothing'
);
select trunkline.set_limit('slots', '{"concurrency": null}') \g /dev/null
set session authorization trunkline_worker;
select is(
  jsonb_build_array(pg_temp.started('slots'), t.bucket('slots')),
  '[10, {"limit": "slots", "in_use": 3, "refused": 0, "waiting": 17, "set_aside": 0, "tokens_of_hour": 0, "requests_of_hour": 0, "tokens_of_minute": 0, "requests_of_minute": 0}]',
  'one without a number'
);
set session authorization trunkline_operator;
select is(
  (select jsonb_agg(jsonb_strip_nulls(to_jsonb(l)) - '{created_at,updated_at,updated_by,counted_up_to,quota_refuses,depth_refuses,late,late_tasks,status}'::text[] order by l.name) from trunkline.limits as l where l.name in ('all', 'rpm', 'slots')),
  '[{"name": "all", "spent": 0, "in_use": 3, "buckets": 1, "refused": 0, "waiting": 13, "fullness": 0.7500, "set_aside": 0, "concurrency": 4, "tokens_of_hour": 30, "tokens_per_hour": 70, "requests_of_hour": 3, "tokens_of_minute": 0, "requests_per_hour": 8, "tokens_per_minute": 50, "requests_of_minute": 0, "requests_per_minute": 5}, {"name": "rpm", "spent": 0, "in_use": 0, "buckets": 1, "refused": 0, "waiting": 14, "fullness": 1.0000, "set_aside": 0, "tokens_of_hour": 0, "requests_of_hour": 3, "tokens_of_minute": 0, "requests_of_minute": 3, "requests_per_minute": 3}, {"name": "slots", "spent": 0, "in_use": 0, "buckets": 1, "refused": 0, "waiting": 7, "set_aside": 0, "tokens_of_hour": 0, "requests_of_hour": 0, "tokens_of_minute": 0, "requests_of_minute": 0}]',
  'the limits show the sums of their buckets'
);

select * from finish();
