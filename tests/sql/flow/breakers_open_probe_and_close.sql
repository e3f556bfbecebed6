-- A breaker opens after so many failures and such a share of them within its window, lets one probe through, and closes by its success.
\ir ../helpers/tools.sql
\ir ../../support/internals/frozen.sql
select plan(49);

-- All that a breaker shows, without what is empty and without its settings.
create function t.breaker(p_name text) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select jsonb_strip_nulls(to_jsonb(b) || jsonb_build_object(
    'opened_at', t.after_noon(b.opened_at), 'probe_at', t.after_noon(b.probe_at), 'changed_at', t.after_noon(b.changed_at), 'probe_job', (t.job(b.probe_job)).task
  )) - '{name,limit,counted_up_to,breaker_failures,breaker_share,breaker_window,breaker_probe_after}'::text[]
  from trunkline.breakers as b where b.name = p_name
$$;
create function t.explained(p_task text) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select jsonb_agg(jsonb_build_array(e.reason, t.after_noon(e.until), e.detail || jsonb_build_object('since', t.after_noon((e.detail ->> 'since')::timestamptz))))
  from (select j.job_id from trunkline.jobs as j where j.task = p_task and j.state in ('ready', 'blocked') order by j.job_id limit 1) as j
  cross join lateral trunkline.explain(p_job => j.job_id) as e
$$;
-- Starts jobs of a task and ends them; the answer is how many there were.
create table t.held (job_id uuid, attempt integer);
grant all on t.held to public;
create function t.run(p_task text, p_count integer, p_end text, p_model text default 'x') returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_count bigint;
  v_jobs uuid[];
begin
  perform trunkline.enqueue(p_task, jsonb_build_object('model', p_model)) from generate_series(1, p_count - (
    select count(*) from trunkline.jobs as j where j.task = p_task and j.state = 'ready' and j.payload ->> 'model' = p_model
  ));
  select array_agg(c.job_id), count(*) into v_jobs, v_count from trunkline.claim('w1', p_limit => p_count, p_tasks => array[p_task]) as c;
  if v_jobs is null or p_end = 'none' then
    return v_count;
  elsif p_end = 'complete' then
    perform trunkline.complete('w1', v_jobs, (select array_agg(j.attempt order by o.place) from unnest(v_jobs) with ordinality as o (job_id, place), trunkline.job(o.job_id) as j));
  elsif p_end = 'fail' then
    perform trunkline.fail('w1', v_jobs, (select array_agg(j.attempt order by o.place) from unnest(v_jobs) with ordinality as o (job_id, place), trunkline.job(o.job_id) as j), p_retryable => array_fill(false, array[cardinality(v_jobs)]));
  elsif p_end = 'release' then
    perform trunkline.release('w1', v_jobs, (select array_agg(j.attempt order by o.place) from unnest(v_jobs) with ordinality as o (job_id, place), trunkline.job(o.job_id) as j));
  end if;
  return v_count;
end;
$$;
create function t.hand_back(p_task text) returns void
language sql security definer set search_path = pg_catalog, pg_temp
as $$ select trunkline.release('w1', array_agg(j.job_id), array_agg(j.attempt)) from trunkline.jobs as j where j.task = p_task and j.state = 'running' $$;
create function t.running(p_task text) returns text[]
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$ select array_agg(j.payload ->> 'model') from trunkline.jobs as j where j.task = p_task and j.state = 'running' $$;
set session authorization trunkline_worker;
select trunkline.register_worker('w1', p_pulse_interval => '1 hour') \g /dev/null
set session authorization trunkline_operator;
select
  trunkline.set_limit('api', '{"breaker_failures": 3, "breaker_share": 0.5, "breaker_window": "10 minutes", "breaker_probe_after": "30 seconds"}'),
  trunkline.set_limit('model/{model}', '{"breaker_failures": 2, "breaker_share": 0, "breaker_window": "60 seconds", "breaker_probe_after": "10 seconds"}'),
  trunkline.set_limit('calm', '{"requests_per_minute": 1000}') \g /dev/null
select trunkline.register_task('ask', p_limits => array['api']), trunkline.register_task('model', p_limits => array['model/{model}']), trunkline.register_task('both', p_limits => array['model/{model}', 'api']), trunkline.register_task('calm', p_limits => array['calm']) \g /dev/null
select is(
  t.breaker('api'),
  '{"state": "closed", "waiting": 0, "attempts": 0, "failures": 0}',
  'without an attempt'
);
select t.run('calm', 5, 'fail'), t.run('ask', 2, 'fail') \g /dev/null
select is(
  t.breaker('api'),
  '{"share": 1.0000, "state": "closed", "waiting": 0, "attempts": 2, "failures": 2}',
  'two failures are too few'
);
select t.run('ask', 4, 'complete') \g /dev/null
select is(
  t.breaker('api'),
  '{"share": 0.3333, "state": "closed", "waiting": 0, "attempts": 6, "failures": 2}',
  'others succeed'
);
select t.run('ask', 1, 'fail') \g /dev/null
select is(
  t.breaker('api'),
  '{"share": 0.4286, "state": "closed", "waiting": 0, "attempts": 7, "failures": 3}',
  'three of seven are less than half'
);
select t.run('ask', 1, 'release') \g /dev/null
select is(
  t.breaker('api'),
  '{"share": 0.3750, "state": "closed", "waiting": 1, "attempts": 8, "failures": 3}',
  'one that is handed back counts as an attempt'
);
select trunkline_test.move_time('1 minute') \g /dev/null
select t.run('ask', 1, 'fail') \g /dev/null
select is(
  t.breaker('api'),
  '{"share": 0.4444, "state": "closed", "waiting": 0, "attempts": 9, "failures": 4}',
  'four of nine are less than half'
);
select t.run('ask', 1, 'fail') \g /dev/null
select is(
  t.breaker('api'),
  '{"share": 0.5000, "state": "open", "reason": "5 of 10 attempts failed within 00:10:00", "waiting": 0, "attempts": 10, "failures": 5, "probe_at": "00:01:30", "opened_at": "00:01:00", "changed_at": "00:01:00", "changed_by": "trunkline_operator"}',
  'five of ten are half'
);
select is(
  t.run('ask', 1, 'fail'),
  '0',
  'then nothing is started'
);
select is(
  t.explained('ask'),
  '[["breaker", "00:01:30", {"since": "00:01:00", "state": "open", "reason": "5 of 10 attempts failed within 00:10:00", "breaker": "api", "failures": 5}]]',
  'as explain says'
);
select is(
  (select to_jsonb(h) from trunkline.health() as h where h.check = 'breakers'),
  '{"ok": false, "check": "breakers", "detail": {"open": ["api"]}}',
  'and health'
);
select trunkline_test.move_time('29.999 seconds') \g /dev/null
select is(
  t.run('ask', 5, 'none'),
  '0',
  'shortly before the probe'
);
select trunkline_test.move_time('0.001 seconds') \g /dev/null
select is(
  t.run('ask', 5, 'none'),
  '1',
  'one job is the probe'
);
select is(
  t.breaker('api'),
  '{"share": 1.0000, "state": "half_open", "reason": "5 of 10 attempts failed within 00:10:00", "waiting": 4, "attempts": 5, "failures": 5, "opened_at": "00:01:00", "probe_job": "ask", "changed_at": "00:01:30", "changed_by": "trunkline_operator"}',
  'while it runs'
);
select is(
  t.run('ask', 5, 'none'),
  '0',
  'nothing else does'
);
select is(
  t.explained('ask'),
  '[["breaker", null, {"since": "00:01:00", "state": "half_open", "reason": "5 of 10 attempts failed within 00:10:00", "breaker": "api", "failures": 5}]]',
  'which explain says too'
);
select t.hand_back('ask') \g /dev/null
select trunkline_test.move_time('1 second') \g /dev/null
select is(
  t.breaker('api'),
  '{"share": 1.0000, "state": "half_open", "reason": "5 of 10 attempts failed within 00:10:00", "waiting": 6, "attempts": 5, "failures": 5, "opened_at": "00:01:00", "probe_job": "ask", "changed_at": "00:01:30", "changed_by": "trunkline_operator"}',
  'a probe without a result'
);
select is(
  t.run('ask', 5, 'fail'),
  '1',
  'makes way for the next'
);
select is(
  t.breaker('api'),
  '{"share": 1.0000, "state": "open", "reason": "the probe failed", "waiting": 5, "attempts": 6, "failures": 6, "probe_at": "00:02:01", "opened_at": "00:01:00", "changed_at": "00:01:31", "changed_by": "trunkline_operator"}',
  'a probe that fails'
);
select trunkline_test.move_time('30 seconds') \g /dev/null
select is(
  t.run('ask', 5, 'complete'),
  '1',
  'the next one'
);
select is(
  t.breaker('api'),
  '{"share": 0.0000, "state": "closed", "reason": "the probe succeeded", "waiting": 4, "attempts": 1, "failures": 0, "opened_at": "00:01:00", "changed_at": "00:02:01", "changed_by": "trunkline_operator"}',
  'a probe that succeeds'
);
select trunkline_test.move_time('1 second') \g /dev/null
select is(
  t.run('ask', 5, 'complete'),
  '5',
  'all start again'
);
select t.run('ask', 2, 'fail') \g /dev/null
select is(
  t.breaker('api'),
  '{"share": 0.2500, "state": "closed", "reason": "the probe succeeded", "waiting": 0, "attempts": 8, "failures": 2, "opened_at": "00:01:00", "changed_at": "00:02:01", "changed_by": "trunkline_operator"}',
  'failures from before do not count'
);
select t.run('ask', 4, 'fail') \g /dev/null
select is(
  t.breaker('api'),
  '{"share": 0.5000, "state": "open", "reason": "6 of 12 attempts failed within 00:10:00", "waiting": 0, "attempts": 12, "failures": 6, "probe_at": "00:02:32", "opened_at": "00:02:02", "changed_at": "00:02:02", "changed_by": "trunkline_operator"}',
  'until there are enough again'
);
select is(
  trunkline.reset_breaker('api'),
  '1',
  'an operator closes it'
);
select is(
  trunkline.reset_breaker('api'),
  '0',
  'once'
);
select is(
  t.breaker('api'),
  '{"state": "closed", "reason": "reset", "waiting": 0, "attempts": 0, "failures": 0, "opened_at": "00:02:02", "changed_at": "00:02:02", "changed_by": "trunkline_operator"}',
  'so that it starts from nothing'
);
select trunkline_test.move_time('1 second') \g /dev/null
-- The window.
select t.run('ask', 2, 'fail') \g /dev/null
select trunkline_test.move_time('10 minutes') \g /dev/null
select is(
  t.breaker('api'),
  '{"share": 0.0000, "state": "closed", "reason": "reset", "waiting": 0, "attempts": 2, "failures": 0, "opened_at": "00:02:02", "changed_at": "00:02:02", "changed_by": "trunkline_operator"}',
  'after the window failures do not count'
);
select t.run('ask', 2, 'fail') \g /dev/null
select trunkline_test.move_time('9 minutes 59.999 seconds') \g /dev/null
select is(
  t.breaker('api'),
  '{"share": 1.0000, "state": "closed", "reason": "reset", "waiting": 0, "attempts": 2, "failures": 2, "opened_at": "00:02:02", "changed_at": "00:02:02", "changed_by": "trunkline_operator"}',
  'shortly before its end they do'
);
select t.run('ask', 1, 'fail') \g /dev/null
select is(
  t.breaker('api'),
  '{"share": 1.0000, "state": "open", "reason": "3 of 3 attempts failed within 00:10:00", "waiting": 0, "attempts": 3, "failures": 3, "probe_at": "00:22:32.999", "opened_at": "00:22:02.999", "changed_at": "00:22:02.999", "changed_by": "trunkline_operator"}',
  'and open it'
);
-- Attempts count by the minute in which they started, as long as it touches the window.
select trunkline.reset_breaker('api'), trunkline_test.move_time('57.001 seconds') \g /dev/null
select t.run('ask', 4, 'complete') \g /dev/null
select trunkline_test.move_time('10 minutes') \g /dev/null
select t.run('ask', 3, 'fail') \g /dev/null
select is(t.breaker('api') ->> 'state' || ' ' || (t.breaker('api') ->> 'attempts'), 'closed 7', 'attempts of the minute in which the window begins');
select trunkline_test.move_time('1 minute') \g /dev/null
select t.run('ask', 1, 'fail') \g /dev/null
select is(t.breaker('api') ->> 'state' || ' ' || (t.breaker('api') ->> 'attempts'), 'open 4', 'not those of an earlier one');
select trunkline.reset_breaker('api') \g /dev/null
select trunkline.trip_breaker('api') \g /dev/null
-- Each key has a breaker.
select is(
  t.run('model', 2, 'fail', 'x'),
  '2',
  'two failures of one key'
);
select t.run('model', 1, 'fail', 'y') \g /dev/null
select is(
  t.breaker('model/x'),
  '{"share": 1.0000, "state": "open", "reason": "2 of 2 attempts failed within 00:01:00", "waiting": 0, "attempts": 2, "failures": 2, "probe_at": "00:34:10", "opened_at": "00:34:00", "changed_at": "00:34:00", "changed_by": "trunkline_operator"}',
  'open its breaker'
);
select is(
  t.breaker('model/y'),
  '{"share": 1.0000, "state": "closed", "waiting": 0, "attempts": 1, "failures": 1}',
  'and no other'
);
select t.run('model', 2, 'none', 'x'), t.run('model', 3, 'none', 'y') \g /dev/null
select is(
  t.running('model'),
  '{y,y,y}',
  'jobs of the other key run'
);
select trunkline.enqueue('both', '{"model": "x"}') \g /dev/null
select is(
  t.explained('both'),
  '[["breaker", "00:34:30", {"since": "00:34:00", "state": "open", "reason": "opened by hand", "breaker": "api", "failures": 4}], ["breaker", "00:34:10", {"since": "00:34:00", "state": "open", "reason": "2 of 2 attempts failed within 00:01:00", "breaker": "model/x", "failures": 2}]]',
  'a job of both is explained by each'
);
select is(
  t.after_noon(trunkline.trip_breaker('model/y', 'provider is down')),
  '00:34:10',
  'by hand'
);
select is(
  t.breaker('model/y'),
  '{"share": 0.2500, "state": "open", "reason": "provider is down", "waiting": 0, "attempts": 4, "failures": 1, "probe_at": "00:34:10", "opened_at": "00:34:00", "changed_at": "00:34:00", "changed_by": "trunkline_operator"}',
  'with a reason'
);
select is(
  t.after_noon(trunkline.trip_breaker('model/y', '', '5 minutes')),
  '00:39:00',
  'or for longer'
);
select is(
  t.breaker('model/y'),
  '{"share": 0.2500, "state": "open", "reason": "opened by hand", "waiting": 0, "attempts": 4, "failures": 1, "probe_at": "00:39:00", "opened_at": "00:34:00", "changed_at": "00:34:00", "changed_by": "trunkline_operator"}',
  'since the first time'
);
select is(
  (select to_jsonb(h) from trunkline.health() as h where h.check = 'breakers'),
  '{"ok": false, "check": "breakers", "detail": {"open": ["api", "model/x", "model/y"]}}',
  'health names all of them'
);
select is(
  trunkline.reset_breaker('model/{model}'),
  '2',
  'all keys are closed at once'
);
select is(
  (select array_agg(b.name || ' ' || b.state order by b.name) from trunkline.breakers as b),
  '{"api open","model/x closed","model/y closed"}',
  'the other limit stays open'
);
select is(
  t.refusal($$select trunkline.reset_breaker('model/z')$$) - 'message' - 'hint',
  '{"code": "unknown_limit", "known": ["api", "model/{model}"], "limit": "model/z", "sqlstate": "TL030"}',
  'a key that was never used is unknown'
);
select is(
  t.refusal($$select trunkline.trip_breaker('nothing')$$) - 'message' - 'hint',
  '{"code": "unknown_limit", "known": ["api", "model/{model}"], "limit": "nothing", "sqlstate": "TL030"}',
  'so is a limit'
);
select is(
  t.refusal($$select trunkline.trip_breaker('calm')$$) - 'message' - 'hint',
  '{"code": "invalid_argument", "must_be": "a limit with a breaker, or one of its keys; set_limit with breaker_failures makes one", "argument": "p_name", "sqlstate": "TL028"}',
  'one without a breaker is refused'
);
-- A limit without a breaker any more holds nothing.
select trunkline.set_limit('api', '{"breaker_failures": null}') \g /dev/null
select is(
  jsonb_build_array(t.breaker('api'), t.run('ask', 2, 'none')),
  '[null, 2]',
  'a breaker that was removed'
);
-- What no window counts is removed by the duty, a day later the breaker too.
select trunkline_test.move_time('23 hours') \g /dev/null
select trunkline.sweep_buckets() \g /dev/null
select is(
  (select array_agg(b.name || ' ' || b.state || ' ' || b.failures || ' ' || coalesce(b.reason, '-') order by b.name) from trunkline.breakers as b),
  '{"model/x closed 0 reset","model/y closed 0 reset"}',
  'old failures are gone'
);
select trunkline_test.move_time('2 hours') \g /dev/null
select trunkline.sweep_buckets() \g /dev/null
select is(
  (select array_agg(b.name || ' ' || b.state || ' ' || coalesce(b.reason, '-') order by b.name) from trunkline.breakers as b),
  '{"model/x closed -","model/y closed -"}',
  'and closed breakers'
);

select * from finish();
