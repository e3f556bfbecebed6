-- A provider's answer pauses a bucket or takes what it has left; a job that no longer fits is set aside and comes back in its place.
\ir ../helpers/tools.sql
\ir ../helpers/cases.sql
\ir ../../support/internals/frozen.sql
select plan(46);

create function t.bucket(p_name text) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select jsonb_strip_nulls(to_jsonb(b) || jsonb_build_object('free_at', t.after_noon(b.free_at), 'paused_until', t.after_noon(b.paused_until), 'refused_at', t.after_noon(b.refused_at)))
    - '{name,limit,counted_up_to,refused,requests_of_hour,tokens_of_hour}'::text[]
  from trunkline.buckets as b where b.name = p_name
$$;
create function t.explained(p_job uuid) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select jsonb_agg(jsonb_build_array(e.reason, t.after_noon(e.until), e.detail - 'paused_until' || case when e.detail ? 'since' then jsonb_build_object('since', t.after_noon((e.detail ->> 'since')::timestamptz)) else '{}' end))
  from trunkline.explain(p_job => p_job) as e where e.reason <> 'no_worker'
$$;
create function pg_temp.observe(p_limit text, p_observed jsonb) returns interval language sql as $$
  select t.after_noon(trunkline.observe_limit(p_limit, p_observed))
$$;
create function t.claim(p_task text) returns text[]
language sql security definer set search_path = pg_catalog, pg_temp
as $$ select array_agg(c.correlation_id order by c.place) from (select c.correlation_id, row_number() over () as place from trunkline.claim('w1', p_limit => 10, p_tasks => array[p_task]) as c) as c $$;
create function t.put(p_task text, p_name text, p_tokens bigint default 0, p_priority integer default 0) returns uuid
language sql security definer set search_path = pg_catalog, pg_temp
as $$ select (trunkline.enqueue(p_task, p_correlation_id => p_name, p_priority => p_priority, p_unique_key => p_name, p_cost => jsonb_build_object('tokens', p_tokens))).job_id $$;
create table t.names (name text, job_id uuid);
grant all on t.names to public;
create function t.states(p_task text) returns text[]
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$ select array_agg(j.correlation_id || ' ' || j.state || coalesce(' ' || j.reason, '') order by j.correlation_id) from trunkline.jobs as j where j.task = p_task $$;
create function t.events(p_kind text) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$ select jsonb_agg(jsonb_build_array((t.job(e.job_id)).correlation_id, t.after_noon(e.at), e.kind, e.to_state, e.detail - 'since') order by (t.job(e.job_id)).correlation_id) from trunkline.events as e where e.kind = p_kind $$;
set session authorization trunkline_operator;
select trunkline.set_limit('api', '{"requests_per_minute": 10, "tokens_per_minute": 100}'), trunkline.set_limit('hour', '{"requests_per_minute": 10, "requests_per_hour": 20}'), trunkline.set_limit('other', '{"concurrency": 5}'),
  trunkline.register_task('ask', p_limits => array['api']), trunkline.register_task('strict', p_limits => array['api'], p_dead_when_deferred => true), trunkline.register_task('two', p_limits => array['other', 'api']) \g /dev/null
set session authorization trunkline_worker;
insert into t.cases (call, expected) values
  ($$observe_limit('api', '{"retry_after": 0}')$$, 'accepted'), ($$observe_limit('api', '{"retry_after": 1000000000000}')$$, 'accepted'), ($$observe_limit('api', '{"retry_after": 1000000000001}')$$, 'p_observed'),
  ($$observe_limit('api', '{"retry_after": -0.1}')$$, 'p_observed'), ($$observe_limit('api', '{"retry_after": null}')$$, 'accepted'), ($$observe_limit('api', '{"retry_after": true}')$$, 'p_observed'),
  ($$observe_limit('api', '{"reason": "x"}')$$, 'accepted'), ($$observe_limit('api', '{"because": "x"}')$$, 'p_observed'), ($$observe_limit('api', jsonb_build_object('reason', repeat('x', 9900)))$$, 'accepted'),
  ($$observe_limit('api', jsonb_build_object('reason', repeat('x', 10000)))$$, 'p_observed'), ($$observe_limit(repeat('x', 400), '{}')$$, 'unknown_limit'), ($$observe_limit(repeat('x', 401), '{}')$$, 'p_observed'),
  ($$observe_limit('api', '{}', p_keys => jsonb_build_object('x', repeat('x', 65000)))$$, 'accepted'), ($$observe_limit('api', '{}', p_keys => jsonb_build_object('x', repeat('x', 65537)))$$, 'p_observed');
select is_empty('select * from t.surprises()', 'an answer is accepted up to its bounds');
select is(
  pg_temp.observe('api', '{"remaining_requests": 10, "remaining_tokens": 100, "reset_requests": 5}'),
  null,
  'nothing to tell'
);
select is(
  pg_temp.observe('api', '{"retry_after": 12.5, "reason": "slow down"}'),
  '00:00:12.5',
  'a pause'
);
select is(
  t.bucket('api'),
  '{"in_use": 0, "free_at": "00:00:12.5", "waiting": 0, "set_aside": 0, "pause_reason": "slow down", "paused_until": "00:00:12.5", "tokens_of_minute": 0, "requests_of_minute": 0}',
  'is shown'
);
select is(
  pg_temp.observe('api', '{"retry_after": 5, "reason": "shorter"}'),
  '00:00:12.5',
  'a shorter one changes nothing'
);
select is(
  pg_temp.observe('api', '{"retry_after": 20}'),
  '00:00:20',
  'a longer one does'
);
select is(
  t.bucket('api'),
  '{"in_use": 0, "free_at": "00:00:20", "waiting": 0, "set_aside": 0, "pause_reason": "the provider asked for a pause", "paused_until": "00:00:20", "tokens_of_minute": 0, "requests_of_minute": 0}',
  'with its own reason'
);
select is(
  pg_temp.observe('other', '{"retry_after": 100000}'),
  '01:00:00',
  'an hour at most'
);
insert into t.names select 'first', t.put('ask', 'first', 10) \g /dev/null
select is(
  t.claim('ask'),
  null,
  'nothing is claimed meanwhile'
);
select is(
  t.explained((select job_id from t.names where name = 'first')),
  '[["limit", "00:00:20", {"ahead": 0, "limit": "api", "status": "active", "tokens": 10, "requests": 1, "tokens_left": 100, "pause_reason": "the provider asked for a pause", "counted_up_to": 1000, "requests_left": 10}]]',
  'which explain says'
);
select is(
  pg_temp.observe('api', '{"retry_after": 0}'),
  null,
  'until the provider takes it back'
);
select is(
  jsonb_build_array(t.bucket('api'), t.claim('ask'), t.bucket('api')),
  '[{"in_use": 0, "waiting": 1, "set_aside": 0, "tokens_of_minute": 0, "requests_of_minute": 0}, ["first"], {"in_use": 0, "waiting": 1, "set_aside": 0, "tokens_of_minute": 0, "requests_of_minute": 0}]',
  'at once'
);
select is(
  pg_temp.observe('api', '{"remaining_requests": 0, "reset_requests": 30, "remaining_tokens": 0, "reset_tokens": 45}'),
  '00:00:45',
  'nothing left pauses until the reset'
);
select is(
  array[pg_temp.observe('api', '{"retry_after": 0}'), pg_temp.observe('api', '{"remaining_tokens": 0}')],
  '{NULL,00:01:00}',
  'or a minute'
);
select is(
  array[pg_temp.observe('api', '{"retry_after": 0}'), pg_temp.observe('api', '{"remaining_tokens": 0, "reset_tokens": 0}')],
  '{NULL,NULL}',
  'a reset that is over tells nothing'
);
select is(
  jsonb_build_array(pg_temp.observe('api', '{"remaining_requests": 4, "reset_requests": 30}'), t.bucket('api')),
  '[null, {"in_use": 0, "waiting": 0, "set_aside": 0, "tokens_of_minute": 10, "requests_of_minute": 1}]',
  'less left than we know'
);
select is(
  t.bucket('api'),
  '{"in_use": 0, "waiting": 0, "set_aside": 0, "tokens_of_minute": 10, "requests_of_minute": 6}',
  'is taken over'
);
select is(
  jsonb_build_array(pg_temp.observe('api', '{"remaining_requests": 8, "remaining_tokens": 95}')),
  '[null]',
  'more left changes nothing'
);
select is(
  pg_temp.observe('api', '{"remaining_tokens": 15.9, "reset_tokens": 90}'),
  null,
  'fewer tokens'
);
select is(
  t.bucket('api'),
  '{"in_use": 0, "waiting": 0, "set_aside": 0, "tokens_of_minute": 85, "requests_of_minute": 6}',
  'too'
);
select is(
  pg_temp.observe('hour', '{"remaining_requests": 3}'),
  null,
  'a limit by the hour is not adjusted'
);
select is(
  t.bucket('hour'),
  '{"in_use": 0, "waiting": 0, "set_aside": 0, "tokens_of_minute": 0, "requests_of_minute": 0}',
  'but stays as it was'
);
select trunkline_test.move_time('29 seconds') \g /dev/null
select is(
  t.bucket('api'),
  '{"in_use": 0, "waiting": 0, "set_aside": 0, "tokens_of_minute": 85, "requests_of_minute": 6}',
  'shortly before the reset'
);
select trunkline_test.move_time('1 second') \g /dev/null
select is(
  t.bucket('api'),
  '{"in_use": 0, "waiting": 0, "set_aside": 0, "tokens_of_minute": 85, "requests_of_minute": 1}',
  'at the reset of requests'
);
select trunkline_test.move_time('31 seconds') \g /dev/null
select is(
  t.bucket('api'),
  '{"in_use": 0, "waiting": 0, "set_aside": 0, "tokens_of_minute": 10, "requests_of_minute": 1}',
  'a minute later'
);
select trunkline_test.move_time('1 second') \g /dev/null
select is(
  t.bucket('api'),
  '{"in_use": 0, "waiting": 0, "set_aside": 0, "tokens_of_minute": 0, "requests_of_minute": 0}',
  'all of it is over'
);

-- Jobs that cost more than a lowered limit ever gives at once.
select t.put('ask', 'a', 60), t.put('ask', 'b', 10), t.put('ask', 'c', 80), t.put('ask', 'd', 20), t.put('strict', 's', 70), t.put('two', 't', 90), t.put('ask', 'e', 60, 5) \g /dev/null
set session authorization trunkline_operator;
select trunkline.set_limit('api', '{"tokens_per_minute": 60}') \g /dev/null
select is(
  t.states('ask'),
  '{"a ready","b ready","c blocked cost_over_limit","d ready","e ready","first running"}',
  'those that still fit stay'
);
select is(
  t.states('strict') || t.states('two'),
  '{"s blocked cost_over_limit","t blocked cost_over_limit"}',
  'of all tasks, and of all limits of a job'
);
select is(
  t.events('set_aside'),
  '[["c", "00:01:02", "set_aside", "blocked", {"cost": 80, "most": 60, "unit": "tokens", "limit": "api", "reason": "cost_over_limit"}], ["s", "00:01:02", "set_aside", "blocked", {"cost": 70, "most": 60, "unit": "tokens", "limit": "api", "reason": "cost_over_limit"}], ["t", "00:01:02", "set_aside", "blocked", {"cost": 90, "most": 60, "unit": "tokens", "limit": "api", "reason": "cost_over_limit"}]]',
  'with an event each'
);
select is(
  t.bucket('api'),
  '{"in_use": 0, "waiting": 7, "set_aside": 3, "tokens_of_minute": 0, "requests_of_minute": 0}',
  'and are shown apart'
);
select is(
  (select h.ok || ' ' || h.detail from trunkline.health() as h where h.check = 'set aside'),
  'true {"jobs": 3, "overdue": 0, "counted_up_to": 10000}',
  'in health'
);
select is(
  (select t.explained(j.job_id) from trunkline.jobs as j where j.correlation_id = 'c'),
  '[["set_aside", null, {"cost": 80, "hint": "Raise the limit with trunkline.set_limit and the job returns to its old place, or cancel it.", "most": 60, "unit": "tokens", "limit": "api", "since": "00:01:02", "reason": "cost_over_limit"}]]',
  'and explained'
);
select is(
  (select t.explained(j.job_id) from trunkline.jobs as j where j.correlation_id = 't'),
  '[["set_aside", null, {"cost": 90, "hint": "Raise the limit with trunkline.set_limit and the job returns to its old place, or cancel it.", "most": 60, "unit": "tokens", "limit": "api", "since": "00:01:02", "reason": "cost_over_limit"}]]',
  'for the limit in question'
);
select trunkline.set_limit('api', '{"tokens_per_minute": 59}') \g /dev/null
select is(
  t.states('ask'),
  '{"a blocked cost_over_limit","b ready","c blocked cost_over_limit","d ready","e blocked cost_over_limit","first running"}',
  'one token less'
);
select is(
  t.claim('ask'),
  '{b,d}',
  'the rest is claimed'
);
select trunkline.set_limit('api', '{"tokens_per_minute": 79}') \g /dev/null
select is(
  t.states('ask') || t.states('strict') || t.states('two'),
  '{"a ready","b running","c blocked cost_over_limit","d running","e ready","first running","s ready","t blocked cost_over_limit"}',
  'what fits again is freed'
);
select is(
  t.events('freed'),
  '[["a", "00:01:02", "freed", "ready", null], ["e", "00:01:02", "freed", "ready", null], ["s", "00:01:02", "freed", "ready", null]]',
  'with an event'
);
select trunkline_test.move_time('62 seconds') \g /dev/null
select is(
  t.claim('ask'),
  '{e}',
  'by priority and in its old place'
);
-- A day is long enough where the task says so.
select trunkline.set_limit('api', '{"tokens_per_minute": 50}') \g /dev/null
select is(
  t.states('strict') || t.states('ask'),
  '{"s blocked cost_over_limit","a blocked cost_over_limit","b running","c blocked cost_over_limit","d running","e running","first running"}',
  'set aside again'
);
select trunkline_test.move_time('24 hours') \g /dev/null
select trunkline.sweep_buckets() \g /dev/null
select is(
  t.states('strict'),
  '{"s blocked cost_over_limit"}',
  'for a day'
);
select is(
  (select h.ok || ' ' || h.detail from trunkline.health() as h where h.check = 'set aside'),
  'false {"jobs": 4, "overdue": 2, "counted_up_to": 10000}',
  'where others were set aside before'
);
select trunkline_test.move_time('1 microsecond') \g /dev/null
select is(
  (select h.ok || ' ' || h.detail from trunkline.health() as h where h.check = 'set aside'),
  'false {"jobs": 4, "overdue": 4, "counted_up_to": 10000}',
  'longer is an alarm'
);
select trunkline.sweep_buckets() \g /dev/null
select is(
  t.states('strict') || t.states('ask') || t.states('two'),
  '{"s dead cost_over_limit","a blocked cost_over_limit","b running","c blocked cost_over_limit","d running","e running","first running","t blocked cost_over_limit"}',
  'and the end of a strict task'
);
select is(
  t.events('outgrown'),
  '[["s", "1 day 00:02:04.000001", "outgrown", "dead", {"cost": 70, "most": 50, "unit": "tokens", "limit": "api", "reason": "cost_over_limit"}]]',
  'as its event says'
);
select is(
  (select d.last_error from trunkline.dead_letters as d),
  '{"type": "cost_over_limit", "message": "The job costs 70 tokens. The limit api gives at most 50 at once."}',
  'and its error'
);
select trunkline.set_limit('api', '{"tokens_per_minute": null}') \g /dev/null
select is(
  t.states('ask') || t.states('two'),
  '{"a ready","b running","c ready","d running","e running","first running","t ready"}',
  'without the limit all fit'
);

select * from finish();
