-- A schedule shows all that it was set with, runs each due time as its policy for missed ones says, and belongs to its tenant.
\ir ../helpers/tools.sql
\ir ../helpers/cases.sql
\ir ../../support/internals/frozen.sql
select plan(42);

-- All that a schedule shows, times after noon, without what is empty.
create function t.shown(p_schedule text) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select jsonb_strip_nulls(to_jsonb(s) - 'schedule' || jsonb_build_object(
    'next_run_at', t.after_noon(s.next_run_at), 'last_run_at', t.after_noon(s.last_run_at), 'last_job_id', (t.job(s.last_job_id)).state, 'last_error_at', t.after_noon(s.last_error_at),
    'created_at', t.after_noon(s.created_at), 'updated_at', t.after_noon(s.updated_at)
  ))
  from trunkline.schedules as s where s.schedule = p_schedule
$$;
create function t.run(p_limit integer default 100) returns text[]
language sql security definer set search_path = pg_catalog, pg_temp
as $$
  select array_agg(concat_ws(' ', r.schedule, t.after_noon(r.due_at), case when r.job_id is not null then (t.job(r.job_id)).state end, r.error) order by r.place)
  from (select r.*, row_number() over () as place from trunkline.run_schedules(p_limit) as r) as r
$$;
create function t.jobs(p_task text) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select jsonb_agg(jsonb_strip_nulls(jsonb_build_object('payload', j.payload, 'queue', j.queue, 'priority', j.priority, 'tenant', j.tenant, 'tags', j.tags, 'at', t.after_noon(j.created_at))) order by j.created_at, j.tags)
  from trunkline.jobs as j where j.task = p_task
$$;
create function t.change(p_change trunkline.schedule_change) returns jsonb language sql immutable as $$
  select to_jsonb(p_change) - 'schedule' || jsonb_build_object('next_run_at', t.after_noon(p_change.next_run_at))
$$;
set session authorization trunkline_operator;
select trunkline.register_task('mail'), trunkline.register_task('count'), trunkline.register_task('ask', p_limits => array['model/{model}']), trunkline.set_limit('model/{model}', '{"concurrency": 1}') \g /dev/null
insert into t.cases (call, expected) values
  ($$set_schedule(repeat('s', 191), '@daily', 'mail')$$, 'accepted'), ($$set_schedule(repeat('s', 192), '@daily', 'mail')$$, 'p_schedule'), ($$set_schedule('', '@daily', 'mail')$$, 'p_schedule'), ($$set_schedule(null, '@daily', 'mail')$$, 'p_schedule'),
  ($$set_schedule('s', '@daily', 'mail', p_missed => 'all')$$, 'accepted'), ($$set_schedule('s', '@daily', 'mail', p_missed => 'skip')$$, 'accepted'), ($$set_schedule('s', '@daily', 'mail', p_missed => null)$$, 'accepted'), ($$set_schedule('s', '@daily', 'mail', p_missed => 'twice')$$, 'p_missed'),
  ($$set_schedule('s', '@daily', 'mail', p_priority => 49)$$, 'accepted'), ($$set_schedule('s', '@daily', 'mail', p_priority => 50)$$, 'priority_out_of_range'), ($$set_schedule('s', '@daily', 'mail', p_payload => '[]')$$, 'payload_not_object'),
  ($$set_schedule('s', '@daily', 'mail', p_queue => repeat('q', 201))$$, 'p_queue'), ($$set_schedule('s', '@daily', 'nobody')$$, 'unknown_task'), ($$set_schedule('s', '61 * * * *', 'mail')$$, 'invalid_cron'),
  ($$set_schedule('s', '@daily', 'mail', p_time_zone => 'Mars')$$, 'unknown_time_zone'), ($$set_schedule('s', '@daily', 'mail', p_time_zone => null)$$, 'accepted'),
  ($$set_schedule('s', '@daily', 'ask')$$, 'limit_key_missing'), ($$set_schedule('s', '@daily', 'ask', '{"model": "m"}')$$, 'accepted'),
  ($$set_schedule('s', '@daily', 'ask', jsonb_build_object('model', repeat('m', 394)))$$, 'accepted'), ($$set_schedule('s', '@daily', 'ask', jsonb_build_object('model', repeat('m', 395)))$$, 'limit_key_missing'),
  ($$run_schedules(1)$$, 'accepted'), ($$run_schedules(0)$$, 'limit_out_of_range'), ($$run_schedules(1000)$$, 'accepted'), ($$run_schedules(1001)$$, 'limit_out_of_range'), ($$run_schedules(null)$$, 'limit_out_of_range'),
  ($$adopt_schedule(repeat('s', 192), 'old')$$, 'p_task'), ($$adopt_schedule('', 'old')$$, 'p_task'), ($$adopt_schedule(null, 'old')$$, 'p_task'), ($$adopt_schedule('mail', 'mail')$$, 'p_task'), ($$adopt_schedule('nobody', 'old')$$, 'unknown_task');
select is_empty('select * from t.surprises()', 'arguments are accepted up to their bounds');

select is(
  t.change(trunkline.set_schedule('each', '*/10 * * * *', 'mail', '{"n": 1}', 'Europe/Berlin', 'post', 5, 'acme', 'all')),
  '{"paused": false, "created": true, "next_run_at": "00:10:00"}',
  'a new one'
);
select is(
  t.shown('each'),
  '{"cron": "*/10 * * * *", "task": "mail", "queue": "post", "missed": "all", "paused": false, "tenant": "acme", "payload": {"n": 1}, "skipped": 0, "priority": 5, "time_zone": "Europe/Berlin", "created_at": "00:00:00", "updated_at": "00:00:00", "next_run_at": "00:10:00"}',
  'has all that it was set with'
);
select is(
  t.change(trunkline.set_schedule('last', '*/10 * * * *', 'count')),
  '{"paused": false, "created": true, "next_run_at": "00:10:00"}',
  'another'
);
select is(
  t.change(trunkline.set_schedule('none', '*/10 * * * *', 'count', p_missed => 'skip')),
  '{"paused": false, "created": true, "next_run_at": "00:10:00"}',
  'a third'
);
select is(
  t.change(trunkline.set_schedule('later', '*/10 * * * *', 'count', p_paused => true)),
  '{"paused": true, "created": true, "next_run_at": null}',
  'and one that is paused'
);
select is(
  t.shown('later'),
  '{"cron": "*/10 * * * *", "task": "count", "missed": "once", "paused": true, "payload": {}, "skipped": 0, "time_zone": "UTC", "created_at": "00:00:00", "updated_at": "00:00:00"}',
  'which waits for nothing'
);
select trunkline_test.move_time('9 minutes 59.999 seconds') \g /dev/null
select is(
  t.run(),
  null,
  'not due yet'
);
select trunkline_test.move_time('0.001 seconds') \g /dev/null
select is(
  t.run(),
  '{"each 00:10:00","last 00:10:00","none 00:10:00"}',
  'due'
);
select is(
  t.run(),
  null,
  'once'
);
select is(
  t.jobs('mail'),
  '[{"at": "00:10:00", "tags": ["schedule:each"], "queue": "post", "tenant": "acme", "payload": {"n": 1}, "priority": 5}]',
  'with what the schedule says'
);
select is(
  jsonb_build_array(t.shown('each'), t.shown('last')),
  '[{"cron": "*/10 * * * *", "task": "mail", "queue": "post", "missed": "all", "paused": false, "tenant": "acme", "payload": {"n": 1}, "skipped": 0, "priority": 5, "time_zone": "Europe/Berlin", "created_at": "00:00:00", "updated_at": "00:00:00", "last_job_id": "ready", "last_run_at": "00:10:00", "next_run_at": "00:20:00"}, {"cron": "*/10 * * * *", "task": "count", "missed": "once", "paused": false, "payload": {}, "skipped": 0, "time_zone": "UTC", "created_at": "00:00:00", "updated_at": "00:00:00", "last_job_id": "ready", "last_run_at": "00:10:00", "next_run_at": "00:20:00"}]',
  'and its run'
);
-- Three due times are missed, the last by half a minute.
select trunkline_test.move_time('30 minutes 30 seconds') \g /dev/null
select is(
  t.run(),
  '{"last 00:40:00","none 00:40:00","each 00:20:00","each 00:30:00","each 00:40:00"}',
  'those that missed some'
);
select is(
  jsonb_build_array(t.shown('each') -> 'next_run_at', t.shown('each') -> 'skipped', t.shown('last') -> 'next_run_at', t.shown('last') -> 'skipped', t.shown('none') -> 'next_run_at', t.shown('none') -> 'skipped'),
  '["00:50:00", 0, "00:50:00", 2, "00:50:00", 2]',
  'each by its policy'
);
-- By more than a minute.
select trunkline_test.move_time('20 minutes 30.001 seconds') \g /dev/null
select is(
  t.run(),
  '{"last 01:00:00","each 00:50:00","each 01:00:00"}',
  'a minute late is too late to skip nothing'
);
select is(
  jsonb_build_array(t.shown('each') -> 'last_run_at', t.shown('last') -> 'last_run_at', t.shown('none')),
  '["01:00:00", "01:00:00", {"cron": "*/10 * * * *", "task": "count", "missed": "skip", "paused": false, "payload": {}, "skipped": 4, "time_zone": "UTC", "created_at": "00:00:00", "updated_at": "00:00:00", "last_job_id": "ready", "last_run_at": "00:40:00", "next_run_at": "01:10:00"}]',
  'as it is counted'
);
-- Bounded: of three that are due.
select trunkline_test.move_time('1 hour') \g /dev/null
select is(
  t.run(2),
  '{"last 02:00:00"}',
  'two runs'
);
select is(
  t.run(2),
  '{"each 01:10:00","each 01:20:00"}',
  'the next two'
);
select is(
  t.run(4),
  '{"each 01:30:00","each 01:40:00","each 01:50:00","each 02:00:00"}',
  'four more'
);
select is(
  t.run(),
  null,
  'the rest'
);
-- Changes.
select is(
  t.change(trunkline.set_schedule('last', '*/10 * * * *', 'count', '{"n": 2}')),
  '{"paused": false, "created": false, "next_run_at": "02:10:00"}',
  'a change of what it does keeps its due time'
);
select is(
  t.change(trunkline.set_schedule('last', '*/7 * * * *', 'count')),
  '{"paused": false, "created": false, "next_run_at": "02:07:00"}',
  'a change of when does not'
);
select is(
  t.change(trunkline.set_schedule('none', '0 12 * * *', 'count', p_time_zone => 'Asia/Kathmandu')),
  '{"paused": false, "created": false, "next_run_at": "18:15:00"}',
  'nor does one of the zone'
);
select is(
  t.change(trunkline.pause_schedule('last')),
  '{"paused": true, "created": false, "next_run_at": null}',
  'paused'
);
select is(
  t.change(trunkline.pause_schedule('last')),
  '{"paused": true, "created": false, "next_run_at": null}',
  'twice'
);
select is(
  t.change(trunkline.set_schedule('last', '*/7 * * * *', 'count')),
  '{"paused": true, "created": false, "next_run_at": null}',
  'stays paused by its code'
);
select trunkline_test.move_time('1 hour') \g /dev/null
select is(
  jsonb_build_array(t.change(trunkline.resume_schedule('last')), t.change(trunkline.resume_schedule('last')), t.shown('last') -> 'skipped'),
  '[{"paused": false, "created": false, "next_run_at": "03:07:00"}, {"paused": false, "created": false, "next_run_at": "03:07:00"}, 8]',
  'misses nothing'
);
select is(
  jsonb_build_array(t.change(trunkline.pause_schedule('last')), t.change(trunkline.set_schedule('last', '*/7 * * * *', 'count', p_paused => false))),
  '[{"paused": true, "created": false, "next_run_at": null}, {"paused": false, "created": false, "next_run_at": "03:07:00"}]',
  'is resumed by code that says so'
);
select is(
  t.refusal($$select trunkline.pause_schedule('nope')$$) - 'message',
  '{"code": "unknown_schedule", "known": ["each", "last", "later", "none"], "schedule": "nope", "sqlstate": "TL024"}',
  'unknown'
);
-- An error is kept until the next run.
select trunkline.pause_queue('default', p_refuse_enqueue => true) \g /dev/null
select trunkline_test.move_time('10 minutes') \g /dev/null
select is(
  t.run(),
  '{"last 03:07:00 TL010: queue is paused and refuses new jobs","each 02:10:00","each 02:20:00","each 02:30:00","each 02:40:00","each 02:50:00","each 03:00:00","each 03:10:00"}',
  'a queue that refuses'
);
select is(
  jsonb_build_array(t.shown('last'), t.shown('each') -> 'last_error'),
  '[{"cron": "*/7 * * * *", "task": "count", "missed": "once", "paused": false, "payload": {}, "skipped": 8, "time_zone": "UTC", "created_at": "00:00:00", "last_error": "TL010: queue is paused and refuses new jobs", "updated_at": "03:01:00.001", "last_job_id": "ready", "last_run_at": "02:00:00", "next_run_at": "03:14:00", "last_error_at": "03:11:00.001"}, null]',
  'is told'
);
select trunkline.resume_queue('default') \g /dev/null
select trunkline_test.move_time('10 minutes') \g /dev/null
select is(
  t.run(),
  '{"last 03:21:00","each 03:20:00"}',
  'the next run'
);
select is(
  t.shown('last'),
  '{"cron": "*/7 * * * *", "task": "count", "missed": "once", "paused": false, "payload": {}, "skipped": 9, "time_zone": "UTC", "created_at": "00:00:00", "updated_at": "03:01:00.001", "last_job_id": "ready", "last_run_at": "03:21:00", "next_run_at": "03:28:00"}',
  'clears it'
);
-- A schedule under the new name of its task.
select trunkline.register_task('posts'), trunkline.set_schedule('mail', '@hourly', 'mail', p_tenant => 'acme'), trunkline.set_schedule('other', '@hourly', 'count') \g /dev/null
select trunkline_test.move_time('1 minute') \g /dev/null
select is(
  array[trunkline.adopt_schedule('posts', 'mail'), trunkline.adopt_schedule('posts', 'mail'), trunkline.adopt_schedule('posts', 'other')],
  '{t,f,f}',
  'adopted'
);
select is(
  t.shown('posts'),
  '{"cron": "@hourly", "task": "posts", "missed": "once", "paused": false, "tenant": "acme", "payload": {}, "skipped": 0, "time_zone": "UTC", "created_at": "03:21:00.001", "updated_at": "03:22:00.001", "next_run_at": "04:00:00"}',
  'with its due time'
);
select trunkline.set_schedule('mail', '@daily', 'mail', p_tenant => 'acme') \g /dev/null
select is(
  array[trunkline.adopt_schedule('posts', 'mail')::text, t.shown('posts') ->> 'cron', t.shown('mail') ->> 'cron'],
  '{true,@hourly,@daily}',
  'the new one stays where both exist'
);
select is(
  (select array_agg(s.schedule order by s.schedule) from trunkline.schedules as s),
  '{each,last,later,none,other,posts}',
  'all that is there'
);
-- Of one tenant.
set trunkline.tenant = 'acme';
select is(
  (select array_agg(s.schedule order by s.schedule) from trunkline.schedules as s),
  '{each,posts}',
  'its own'
);
select is(
  array[t.outcome($$pause_schedule('last')$$), t.outcome($$pause_schedule('each')$$), t.outcome($$resume_schedule('last')$$), t.outcome($$remove_schedule('last')$$), t.outcome($$set_schedule('last', '@daily', 'count')$$), t.outcome($$set_schedule('each', '@daily', 'count', p_tenant => 'b')$$), t.outcome($$set_schedule('fresh', '@daily', 'count')$$)],
  '{unknown_schedule,accepted,unknown_schedule,unknown_schedule,tenant_denied,tenant_denied,accepted}',
  'no other'
);
select is(
  t.refusal($$select trunkline.pause_schedule('last')$$) - 'message',
  '{"code": "unknown_schedule", "known": ["each", "posts"], "schedule": "last", "sqlstate": "TL024"}',
  'nor learns of others'
);
select is(
  array[trunkline.adopt_schedule('count', 'last'), trunkline.adopt_schedule('mail', 'other')],
  '{f,f}',
  'adopts none'
);
reset trunkline.tenant;
select trunkline.remove_schedule('each') \g /dev/null
select is(
  (select array_agg(s.schedule order by s.schedule) from trunkline.schedules as s),
  '{last,later,none,other,posts}',
  'removed'
);

select * from finish();
