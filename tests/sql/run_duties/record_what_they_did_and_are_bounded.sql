-- What a duty did is recorded in full, runs are bounded, and health reports what is late, failing or switched off.
\ir ../helpers/tools.sql
\ir ../helpers/cases.sql
\ir ../../support/internals/frozen.sql
select plan(32);

create function t.duty(p_duty text) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select jsonb_strip_nulls(to_jsonb(d) - '{duty,description,function}'::text[] || jsonb_build_object('started_at', t.after_noon(d.started_at), 'ended_at', t.after_noon(d.ended_at), 'succeeded_at', t.after_noon(d.succeeded_at)))
  from trunkline.duties as d where d.duty = p_duty
$$;
create function t.health(p_check text) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$ select jsonb_strip_nulls(jsonb_build_object('ok', h.ok) || h.detail - 'succeeded_at') from trunkline.health() as h where h.check = p_check $$;
create schema app;
create table app.runs (at timestamptz);
create function app.ok() returns integer language sql as 'select 7';
create function app.fails() returns integer language sql as 'select 1 / (select count(*)::integer from app.runs)';
create function app.rows() returns setof integer language sql as 'select generate_series(1, 3)';
create function app.nothing() returns void language sql as 'select';
create function app.needs(p_a integer) returns void language sql as 'select';
create function app.twice() returns void language sql as 'select';
create function app.twice(p_a integer default 1) returns void language sql as 'select';
create procedure app.procedure() language sql as 'select';
create function app.trigger() returns trigger language plpgsql as 'begin return new; end';
grant usage on schema app to trunkline_owner;
grant select on app.runs to trunkline_owner;
create schema open_to_all;
create function open_to_all.f() returns void language sql as 'select';
grant usage, create on schema open_to_all to public;
create schema hidden;
create function hidden.f() returns void language sql as 'select';
set session authorization trunkline_owner;
insert into t.cases (call, expected) values
  ($$add_duty('a', 'app.ok', '1 hour')$$, 'accepted'), ($$add_duty(repeat('a', 63), 'app.ok', '1 hour')$$, 'accepted'), ($$add_duty(repeat('a', 64), 'app.ok', '1 hour')$$, 'p_duty'), ($$add_duty('', 'app.ok', '1 hour')$$, 'p_duty'),
  ($$add_duty(null, 'app.ok', '1 hour')$$, 'p_duty'), ($$add_duty('A', 'app.ok', '1 hour')$$, 'p_duty'), ($$add_duty('1a', 'app.ok', '1 hour')$$, 'p_duty'), ($$add_duty('promote', 'app.ok', '1 hour')$$, 'p_duty'),
  ($$add_duty('a', 'app.ok', '1 microsecond')$$, 'accepted'), ($$add_duty('a', 'app.ok', '0')$$, 'p_every'), ($$add_duty('a', 'app.ok', null)$$, 'p_every'), ($$add_duty('a', 'app.ok', '-1 second')$$, 'p_every'),
  ($$add_duty('a', 'app.ok', '1 hour', repeat('x', 1000))$$, 'accepted'), ($$add_duty('a', 'app.ok', '1 hour', repeat('x', 1001))$$, 'p_description'),
  ($$enable_duty('promote', null)$$, 'p_enabled'), ($$enable_duty('nope', true)$$, 'unknown_duty'), ($$remove_duty('promote')$$, 'p_duty'), ($$remove_duty('nope')$$, 'unknown_duty'), ($$run_duty('nope')$$, 'unknown_duty');
insert into t.cases (call, expected)
select format(f.call, n.number), case when n.number between 1 and f.most then 'accepted' else 'limit_out_of_range' end
from (values ('promote(%s)', 100000), ('reclaim(%s)', 10000), ('sweep_idempotency(%s)', 100000), ('sweep_buckets(%s)', 100000)) as f (call, most), (values (0), (1), (10000), (10001), (100000), (100001)) as n (number);
select is_empty('select * from t.surprises()', 'arguments are accepted up to their bounds');
select is(
  (select jsonb_agg(jsonb_build_array(f, t.refusal(format('select trunkline.add_duty(''a'', %L, ''1 hour'')', f)) ->> 'must_be')) from unnest(array['ok', 'app.ok()', 'a.b.c', 'app.none', 'app.twice', 'app.procedure', 'app.needs', 'app.trigger', 'open_to_all.f', 'hidden.f', null]) as f),
  '[["ok", "a name with its schema and without parentheses, such as app.clean_up"], ["app.ok()", "a name with its schema and without parentheses, such as app.clean_up"], ["a.b.c", "a name with its schema and without parentheses, such as app.clean_up"], ["app.none", "a function that exists"], ["app.twice", "the only function of its name in its schema"], ["app.procedure", "a function, not a procedure, an aggregate or a window function"], ["app.needs", "a function without required arguments"], ["app.trigger", "a function that is not made for triggers"], ["open_to_all.f", "in a schema in which only superusers and members of trunkline_owner can create functions"], ["hidden.f", "executable by trunkline_owner: grant it usage on the schema and execute on the function"], [null, "a name with its schema and without parentheses, such as app.clean_up"]]',
  'functions that cannot be duties'
);
select trunkline.add_duty('ok', 'app.ok', '1 minute'), trunkline.add_duty('fails', 'app.fails', '1 minute', 'Fails.'), trunkline.add_duty('rows', 'app.rows', '2 minutes'), trunkline.add_duty('nothing', 'app.nothing', '1 hour') \g /dev/null
select is(
  (select jsonb_agg(jsonb_build_array(d.duty, d.every, d.description, d.function, d.enabled, d.late) order by d.duty) from trunkline.duties as d where d.function like 'app.%'),
  '[["fails", "00:01:00", "Fails.", "app.fails", true, true], ["nothing", "01:00:00", "Calls app.nothing.", "app.nothing", true, true], ["ok", "00:01:00", "Calls app.ok.", "app.ok", true, true], ["rows", "00:02:00", "Calls app.rows.", "app.rows", true, true]]',
  'those that were added'
);
set session authorization trunkline_worker;
set client_min_messages = error;
select is(
  (select array_agg(concat_ws(' ', r.duty, r.ran, case when r.duty <> 'maintain_partitions' then r.rows end, r.error) order by r.place) from (select r.*, row_number() over () as place from trunkline.run_duties() as r) as r),
  '{"fails t 0 division by zero","nothing t","ok t 7","rows t 3","advance_workflows t 0","decide_workers t 0","expand_workflows t 0","expire t 0","promote t 0","reclaim t 0","run_schedules t 0","sweep_artifacts t 0","sweep_buckets t 0","sweep_idempotency t 0","sweep_labels t 0","sweep_live t 0","sweep_operator_log t 0","sweep_steps t 0","sweep_workflows t 0","maintain_partitions t"}',
  'all of them run, users'' first, partitions last'
);
select is(
  (select array_agg(r.duty) from trunkline.run_duties() as r),
  null,
  'none is due again'
);
select is(
  t.duty('ok'),
  '{"late": false, "rows": 7, "runs": 1, "every": "00:01:00", "enabled": true, "ended_at": "00:00:00", "failures": 0, "started_at": "00:00:00", "succeeded_at": "00:00:00", "failures_in_a_row": 0}',
  'a success'
);
select is(
  t.duty('fails'),
  '{"late": true, "rows": 0, "runs": 1, "every": "00:01:00", "enabled": true, "ended_at": "00:00:00", "failures": 1, "last_error": {"message": "division by zero", "sqlstate": "22012"}, "started_at": "00:00:00", "failures_in_a_row": 1}',
  'a failure'
);
select is(
  t.duty('rows'),
  '{"late": false, "rows": 3, "runs": 1, "every": "00:02:00", "enabled": true, "ended_at": "00:00:00", "failures": 0, "started_at": "00:00:00", "succeeded_at": "00:00:00", "failures_in_a_row": 0}',
  'rows'
);
select is(
  t.duty('nothing'),
  '{"late": false, "runs": 1, "every": "01:00:00", "enabled": true, "ended_at": "00:00:00", "failures": 0, "started_at": "00:00:00", "succeeded_at": "00:00:00", "failures_in_a_row": 0}',
  'no rows'
);
select trunkline_test.move_time('59.999999 seconds') \g /dev/null
select is(
  (select array_agg(r.duty) from trunkline.run_duties() as r where r.duty in ('ok', 'fails', 'rows', 'nothing')),
  null,
  'shortly before a minute'
);
select trunkline_test.move_time('0.000001 seconds') \g /dev/null
select is(
  (select array_agg(r.duty) from trunkline.run_duties() as r where r.duty in ('ok', 'fails', 'rows', 'nothing')),
  '{fails,ok}',
  'after a minute'
);
select is(
  (select to_jsonb(r) from trunkline.run_duty('rows') as r),
  '{"ran": true, "duty": "rows", "rows": 3, "error": null}',
  'one now, due or not'
);
select is(
  (select to_jsonb(r) from trunkline.run_duty('fails') as r),
  '{"ran": true, "duty": "fails", "rows": 0, "error": "division by zero"}',
  'which fails'
);
select is(
  t.duty('fails'),
  '{"late": true, "rows": 0, "runs": 3, "every": "00:01:00", "enabled": true, "ended_at": "00:01:00", "failures": 3, "last_error": {"message": "division by zero", "sqlstate": "22012"}, "started_at": "00:01:00", "failures_in_a_row": 3}',
  'three times in a row'
);
select is(
  jsonb_build_array(t.health('duty fails'), t.health('duty ok')),
  '[{"ok": false, "late": true, "every": "00:01:00", "enabled": true, "last_error": {"message": "division by zero", "sqlstate": "22012"}, "failures_in_a_row": 3}, {"ok": true, "late": false, "every": "00:01:00", "enabled": true, "failures_in_a_row": 0}]',
  'is an alarm'
);
set session authorization default;
insert into app.runs values (now());
set session authorization trunkline_operator;
select trunkline.run_duty('fails') \g /dev/null
select is(
  jsonb_build_array(t.health('duty fails'), t.duty('fails')),
  '[{"ok": true, "late": false, "every": "00:01:00", "enabled": true, "failures_in_a_row": 0}, {"late": false, "rows": 1, "runs": 4, "every": "00:01:00", "enabled": true, "ended_at": "00:01:00", "failures": 3, "started_at": "00:01:00", "succeeded_at": "00:01:00", "failures_in_a_row": 0}]',
  'until it succeeds'
);
select trunkline_test.move_time('2 minutes') \g /dev/null
select is(
  jsonb_build_array(t.health('duty ok'), t.health('duty promote')),
  '[{"ok": true, "late": false, "every": "00:01:00", "enabled": true, "failures_in_a_row": 0}, {"ok": false, "late": true, "every": "00:00:05", "enabled": true, "failures_in_a_row": 0}]',
  'two runs late is not late'
);
select trunkline_test.move_time('1 microsecond') \g /dev/null
select is(
  jsonb_build_array(t.health('duty ok'), t.health('duty nothing')),
  '[{"ok": false, "late": true, "every": "00:01:00", "enabled": true, "failures_in_a_row": 0}, {"ok": true, "late": false, "every": "01:00:00", "enabled": true, "failures_in_a_row": 0}]',
  'more is'
);
select trunkline.enable_duty('ok', false) \g /dev/null
select is(
  jsonb_build_array(t.health('duty ok'), (select array_agg(r.duty) from trunkline.run_duties() as r where r.duty in ('ok', 'rows'))),
  '[{"ok": false, "late": false, "every": "00:01:00", "enabled": false, "failures_in_a_row": 0}, ["rows"]]',
  'switched off'
);
select is(
  (select to_jsonb(r) from trunkline.run_duty('ok') as r),
  '{"ran": true, "duty": "ok", "rows": 7, "error": null}',
  'but run by name'
);
set session authorization trunkline_owner;
select trunkline.add_duty('ok', 'app.rows', '5 minutes') \g /dev/null
select is(
  t.duty('ok'),
  '{"late": false, "rows": 7, "runs": 3, "every": "00:05:00", "enabled": false, "ended_at": "00:03:00.000001", "failures": 0, "started_at": "00:03:00.000001", "succeeded_at": "00:03:00.000001", "failures_in_a_row": 0}',
  'changed'
);
select trunkline.remove_duty('rows') \g /dev/null
select is(
  (select array_agg(d.duty order by d.duty) from trunkline.duties as d where d.function like 'app.%'),
  '{fails,nothing,ok}',
  'removed'
);
-- The clock is set back: a duty does not wait for it.
select trunkline_test.move_time('-1 day') \g /dev/null
set session authorization trunkline_worker;
select is(
  (select array_agg(r.duty order by r.duty) from trunkline.run_duties() as r),
  '{advance_workflows,decide_workers,expand_workflows,expire,fails,maintain_partitions,nothing,promote,reclaim,run_schedules,sweep_artifacts,sweep_buckets,sweep_idempotency,sweep_labels,sweep_live,sweep_operator_log,sweep_steps,sweep_workflows}',
  'a start in the future is due'
);
-- For one tenant.
set trunkline.tenant = 'a';
select trunkline_test.move_time('1 hour') \g /dev/null
select is(
  (select jsonb_object_agg(r.duty, r.ran) from trunkline.run_duties() as r),
  '{"fails": false, "advance_workflows": true, "decide_workers": false, "expand_workflows": false, "sweep_artifacts": true, "sweep_steps": true, "sweep_workflows": true, "expire": true, "nothing": false, "promote": true, "reclaim": true, "run_schedules": false, "sweep_buckets": true, "sweep_idempotency": true, "sweep_labels": true, "sweep_live": true, "sweep_operator_log": true, "maintain_partitions": true}',
  'what needs all tenants is left to others'
);
select is(
  (select to_jsonb(r) from trunkline.run_duty('run_schedules') as r),
  '{"ran": false, "duty": "run_schedules", "rows": null, "error": null}',
  'also by name'
);
reset trunkline.tenant;

-- What the built-in ones do, a bounded number at a time.
set session authorization trunkline_producer;
select trunkline.register_task('mail') \g /dev/null
select trunkline.enqueue('mail', p_idempotency_key => k, p_delay => d) from (values ('a', interval '3 seconds'), ('b', interval '1 second'), ('c', interval '2 seconds')) as v (k, d) \g /dev/null
set session authorization trunkline_worker;
select trunkline_test.move_time('2 seconds') \g /dev/null
select is(
  array[trunkline.promote(1), trunkline.promote(), trunkline.promote()],
  '{1,1,0}',
  'promote'
);
select trunkline_test.move_time('6 days 23 hours 59 minutes 57.999 seconds') \g /dev/null
select is(
  trunkline.sweep_idempotency(),
  '0',
  'keys are kept'
);
select trunkline_test.move_time('0.001 seconds') \g /dev/null
select is(
  array[trunkline.sweep_idempotency(2), trunkline.sweep_idempotency(2), trunkline.sweep_idempotency()],
  '{2,1,0}',
  'for a week'
);
set session authorization trunkline_producer;
select is(
  (select jsonb_build_array(e.created, e.state) from trunkline.enqueue('mail', p_idempotency_key => 'a') as e),
  '[true, "ready"]',
  'then a request is a new one'
);
select trunkline.enqueue('mail', p_expires_at => trunkline.clock() + make_interval(secs => s)) from unnest(array[3, 1, 2]) as s \g /dev/null
select trunkline_test.move_time('2 seconds') \g /dev/null
set session authorization trunkline_worker;
select is(
  (select r.rows from trunkline.run_duty('expire') as r),
  '2',
  'expired jobs end'
);
set session authorization trunkline_reader;
select is(
  (select array_agg(j.state || ' ' || j.reason) from trunkline.jobs as j where j.reason = 'expired'),
  '{"cancelled expired","cancelled expired"}',
  'cancelled'
);
set session authorization trunkline_operator;
select is(
  (select jsonb_object_agg(h.check, h.ok) from trunkline.health() as h where h.check not like 'duty %'),
  '{"claims": true, "breakers": true, "artifacts": true, "set aside": true, "workflows": true, "stale work": true, "deferred work": true, "default partitions": true}',
  'health when all is well'
);

select * from finish();
