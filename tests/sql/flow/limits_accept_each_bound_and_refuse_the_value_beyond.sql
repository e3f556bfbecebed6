-- Each part of a limit is accepted up to both of its bounds and refused beyond them; the view shows all parts with their defaults.
\ir ../helpers/tools.sql
\ir ../helpers/cases.sql
\ir ../../support/internals/frozen.sql
select plan(17);

create function t.parts(p_limit text) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$ select jsonb_strip_nulls(to_jsonb(l)) - '{name,created_at,updated_at,updated_by,counted_up_to}'::text[] from trunkline.limits as l where l.name = p_limit $$;
set session authorization trunkline_operator;
select trunkline.set_limit('plain', '{}') \g /dev/null
-- Lowest and highest value of each part, and one step beyond.
insert into t.cases (call, expected)
select format('set_limit(''new'', jsonb_build_object(''quota'', 1, %L, %s))', p.part, v.value), v.expected
from (values
  ('requests_per_minute', 0, 1000000000000), ('requests_per_hour', 0, 1000000000000), ('tokens_per_minute', 0, 1000000000000),
  ('tokens_per_hour', 0, 1000000000000), ('concurrency', 0, 100000), ('quota', 0, 1000000000000000), ('quota_low_below', -50, 50),
  ('breaker_failures', 1, 1000000), ('depth_limit', 0, 1000000000), ('weight', 1, 1000), ('share_cap', 1, 100000)
) as p (part, low, high)
cross join lateral (values
  (p.low::text, 'accepted'), (p.high::text, 'accepted'), ((p.low - 1)::text, 'p_parts'), ((p.high + 1)::text, 'p_parts'), ((p.low + 1)::text || '.5', 'p_parts'),
  ('''1''::text', 'p_parts'), ('null::text', 'accepted')
) as v (value, expected)
where not (p.part in ('weight', 'share_cap') and v.value like 'null%');
insert into t.cases (call, expected)
select format('set_limit(''new'', jsonb_build_object(''quota'', 1, ''breaker_failures'', 1, %L, %s))', p.part, v.value), v.expected
from (values ('quota_buffer', 0.0001), ('quota_low_share', 0), ('breaker_share', 0), ('backpressure_threshold', 0.01)) as p (part, low)
cross join lateral (values
  (p.low::text, 'accepted'), ('1', 'accepted'), ((p.low - 0.00001)::text, 'p_parts'), ('1.00001', 'p_parts'), ('''half''::text', 'p_parts'), ('null::text', 'accepted')
) as v (value, expected);
insert into t.cases (call, expected)
select format('set_limit(''new'', jsonb_build_object(''quota'', 1, ''breaker_failures'', 1, %L, %s))', p.part, v.value), v.expected
from (values ('quota_window', 3600, 31622400), ('breaker_window', 60, 86400), ('breaker_probe_after', 1, 86400), ('backpressure_delay', 0, 86400)) as p (part, low, high)
cross join lateral (values
  (format('%L', p.low || ' seconds'), 'accepted'), (format('%L', p.high || ' seconds'), 'accepted'), (format('%L', p.low - 1 || ' seconds'), 'p_parts'),
  (format('%L', p.high + 1 || ' seconds'), 'p_parts'), (p.low::text, 'p_parts'), (format('%L', 'soon'), 'p_parts'), ('null::text', 'accepted')
) as v (value, expected);
insert into t.cases (call, expected) values
  ($$set_limit('new', '{"quota": 1, "quota_unit": "pages"}')$$, 'accepted'), ($$set_limit('new', '{"quota": 1, "quota_unit": ""}')$$, 'p_parts'),
  ($$set_limit('new', jsonb_build_object('quota', 1, 'quota_unit', repeat('x', 50)))$$, 'accepted'),
  ($$set_limit('new', jsonb_build_object('quota', 1, 'quota_unit', repeat('x', 51)))$$, 'p_parts'),
  ($$set_limit('new', '{"quota": 1, "quota_unit": 3}')$$, 'p_parts'),
  ($$set_limit('new', '{"quota": 1, "quota_period": "day"}')$$, 'accepted'), ($$set_limit('new', '{"quota": 1, "quota_period": "month"}')$$, 'accepted'),
  ($$set_limit('new', '{"quota": 1, "quota_period": "week"}')$$, 'p_parts'),
  ($$set_limit('new', '{"quota": 1, "quota_period": "day", "quota_window": null}')$$, 'accepted'),
  ($$set_limit('new', '{"quota": 1, "quota_period": "day", "quota_window": "1 day"}')$$, 'p_parts'),
  ($$set_limit('new', '{"quota_refuses": true, "depth_refuses": false}')$$, 'accepted'), ($$set_limit('new', '{"quota_refuses": 1}')$$, 'p_parts'),
  ($$set_limit('new', '{"depth_refuses": null}')$$, 'p_parts'), ($$set_limit('new', '{"quota_refuses": null}')$$, 'p_parts'),
  ($$set_limit('new', '{"depth": 1}')$$, 'p_parts'), ($$set_limit('new', '[]')$$, 'p_parts'), ($$set_limit('new', null)$$, 'accepted'),
  ($$set_limit('new', jsonb_build_object('concurrency', 1, repeat('x', 10000), null))$$, 'p_parts'),
  ($$set_limit('new', p_status => 'active')$$, 'accepted'), ($$set_limit('new', p_status => 'maintenance')$$, 'accepted'),
  ($$set_limit('new', p_status => 'disabled')$$, 'accepted'), ($$set_limit('new', p_status => 'off')$$, 'p_status'),
  ($$set_limit('new', p_status => 'active', p_reason => repeat('x', 1000))$$, 'accepted'),
  ($$set_limit('new', p_status => 'active', p_reason => repeat('x', 1001))$$, 'p_reason'),
  ($$set_limit(repeat('x', 200))$$, 'accepted'), ($$set_limit(repeat('x', 201))$$, 'p_limit'), ($$set_limit('')$$, 'p_limit'), ($$set_limit(null)$$, 'p_limit'),
  ($$set_limit('a/{b}')$$, 'accepted'), ($$set_limit('a/{b}/{c}')$$, 'accepted'), ($$set_limit('a/{b}-{c}')$$, 'accepted'), ($$set_limit('a/{b}{c}')$$, 'p_limit'),
  ($$set_limit('a/{b}x{c}')$$, 'p_limit'), ($$set_limit('a/{b}1{c}')$$, 'p_limit'), ($$set_limit('a/{b}%{c}')$$, 'p_limit'), ($$set_limit('a/{b')$$, 'accepted'),
  ($$set_limit('a/b}')$$, 'accepted'), ($$set_limit('a/{}')$$, 'accepted');
select is_empty('select * from t.surprises()', 'every part is accepted or refused as it should be');
select is((select array_agg(name) from trunkline.limits), array['plain'], 'nothing was stored');
select is(
  t.refusal($$select trunkline.set_limit('new', '{"concurrency": 100001}')$$) - 'message',
  '{"sqlstate": "TL028", "code": "invalid_argument", "argument": "p_parts", "must_be": "concurrency as a whole number from 0 to 100000, or null"}'::jsonb, 'what it must be'
);
select is(
  t.refusal($$select trunkline.set_limit('new', '{"depth": 1}')$$) ->> 'must_be',
  'an object with backpressure_delay, backpressure_threshold, breaker_failures, breaker_probe_after, breaker_share, breaker_window, concurrency, depth_limit, depth_refuses, quota, quota_buffer, quota_low_below, quota_low_share, quota_period, quota_refuses, quota_unit, quota_window, requests_per_hour, requests_per_minute, share_cap, tokens_per_hour, tokens_per_minute, weight',
  'and the parts that there are'
);

-- Names that could be filled in to the same.
select trunkline.set_limit('frail', '{"breaker_failures": 1}'), trunkline.set_limit('model/{model}'), trunkline.set_limit('x-{a}-y/{b}'), trunkline.register_task('asks', p_limits => array['tenants/{tenant}']) \g /dev/null
delete from t.cases;
insert into t.cases (call, expected)
select format('set_limit(%L)', n.name), case when n.free then 'accepted' else 'p_limit' end
from (values
  ('model/{other}', false), ('{any}/{model}', false), ('mod{a}/{b}', false), ('model/gpt', true), ('models/{model}', true), ('model/{model}/x', true), ('model/{model}', true),
  ('model/{a}-{b}', false), ('m{a}/x{b}', false), ('m{a}-z/{b}', true), ('x-{a}/{b}', false), ('{a}-y/{b}', false), ('x-{a}-z/{b}', true), ('w-{a}-y/{b}', true), ('x-1-y/{b}', false),
  ('tenants/{key}', false), ('tenants/a', true), ('tenant/{tenant}', true), ('tenants/{tenant}', true)
) as n (name, free);
insert into t.cases (call, expected) values
  ($$register_task('other', p_limits => array['model/{m}'])$$, 'p_limits'), ($$register_task('other', p_limits => array['model/{model}'])$$, 'accepted'),
  ($$register_task('other', p_limits => array['tenants/{key}'])$$, 'p_limits'), ($$register_task('asks', p_limits => array['tenants/{key}'])$$, 'accepted'),
  ($$register_task('other', p_limits => array['b/{x}', 'b/{y}'])$$, 'p_limits');
insert into t.cases (call, expected) values
  ($$trip_breaker('frail', p_for => '1 second')$$, 'accepted'), ($$trip_breaker('frail', p_for => '0.999 seconds')$$, 'p_for'), ($$trip_breaker('frail', p_for => '30 days')$$, 'accepted'),
  ($$trip_breaker('frail', p_for => '30 days 1 second')$$, 'p_for'), ($$trip_breaker('frail', repeat('x', 1000))$$, 'accepted'), ($$trip_breaker('frail', repeat('x', 1001))$$, 'p_reason'),
  ($$trip_breaker('model/{model}')$$, 'p_name'), ($$trip_breaker('plain')$$, 'p_name'), ($$reset_breaker('plain')$$, 'p_name'), ($$reset_breaker('frail')$$, 'accepted');
select is_empty('select * from t.surprises()', 'names that overlap are refused, and breakers opened within their bounds');
select is(
  t.refusal($$select trunkline.set_limit('{a}/{b}')$$) ->> 'must_be', 'a name that cannot be filled in to the same as another limit: model/{model} overlaps', 'with the first that does'
);

-- The parts with their defaults.
select is(trunkline.set_limit('full', '{"requests_per_minute": 1, "requests_per_hour": 2, "tokens_per_minute": 3, "tokens_per_hour": 4, "concurrency": 5, "quota": 6,
  "breaker_failures": 7, "backpressure_threshold": 0.5, "backpressure_delay": "9 seconds", "depth_limit": 8}'), true, 'a new limit');
select is(
  t.parts('full'),
  '{"status": "active", "requests_per_minute": 1, "requests_per_hour": 2, "tokens_per_minute": 3, "tokens_per_hour": 4, "concurrency": 5, "buckets": 0, "in_use": 0,
    "requests_of_minute": 0, "requests_of_hour": 0, "tokens_of_minute": 0, "tokens_of_hour": 0, "waiting": 0, "refused": 0, "quota": 6, "quota_unit": "units",
    "quota_window": "30 days", "quota_buffer": 0.95, "quota_low_share": 0.75, "quota_low_below": 0, "quota_refuses": true, "spent": 0, "breaker_failures": 7,
    "breaker_share": 0.2, "breaker_window": "00:10:00", "breaker_probe_after": "00:01:00", "backpressure_threshold": 0.5, "backpressure_delay": "00:00:09",
    "depth_limit": 8, "depth_refuses": true, "late": 0, "late_tasks": [], "set_aside": 0}'::jsonb,
  'has these defaults'
);
select is(trunkline.set_limit('full', '{"quota_period": "month", "concurrency": null, "breaker_failures": null}', 'maintenance', 'moving'), false, 'changing it');
select is(
  (select jsonb_strip_nulls(jsonb_build_object('status', l.status, 'reason', l.reason, 'window', l.quota_window, 'period', l.quota_period, 'buffer', l.quota_buffer,
    'concurrency', l.concurrency, 'breaker', l.breaker_failures, 'minute', l.requests_per_minute)) from trunkline.limits as l where l.name = 'full'),
  '{"status": "maintenance", "reason": "moving", "period": "month", "buffer": 0.95, "minute": 1}'::jsonb,
  'a period replaces the window, null removes a part, the rest stays'
);
select trunkline.set_limit('full', '{"quota_window": "2 days"}') \g /dev/null
select is(
  (select concat_ws(' ', l.status, l.reason, l.quota_window, l.quota_period) from trunkline.limits as l where l.name = 'full'), 'maintenance moving 2 days',
  'a window replaces the period; without a status it stays, with its reason'
);
select trunkline.set_limit('full', p_status => 'active') \g /dev/null
select is((select concat_ws(' ', l.status, l.reason) from trunkline.limits as l where l.name = 'full'), 'active', 'a status without a reason removes it');
select trunkline.set_limit('budget', '{"quota": 100, "quota_period": "day", "quota_unit": "tokens"}') \g /dev/null
select is((select concat_ws(' ', l.quota_unit, l.quota_buffer, l.quota_low_share, l.quota_window) from trunkline.limits as l where l.name = 'budget'), 'tokens 1.0000 0.7500', 'a budget may be spent completely');
select is((select t.after_noon(updated_at) || ' ' || t.after_noon(created_at) || ' ' || updated_by from trunkline.limits where name = 'full'), '00:00:00.000004 00:00:00 trunkline_operator', 'a change is later than the one before, even within the same instant');

-- Limits that code declares: an operator's change stays, and only what differs is set again.
create function pg_temp.declare(p_declares jsonb) returns integer language sql as $$
  select trunkline.register_tasks(jsonb_build_array(jsonb_build_object('task', 'asks', 'limits', '["tenants/{tenant}"]'::jsonb, 'declares', p_declares)))
$$;
select is(array[
  pg_temp.declare('{"b": {"concurrency": 1, "requests_per_minute": 5}, "a": {"concurrency": 2}}'), pg_temp.declare('{"b": {"concurrency": 1, "requests_per_minute": 5}, "a": {"concurrency": 2}}')
], array[1, 0], 'declaring twice changes nothing');
select trunkline.set_limit('b', '{"concurrency": 9, "requests_per_minute": 9}') \g /dev/null
select pg_temp.declare('{"b": {"concurrency": 1, "requests_per_minute": 6, "tokens_per_minute": 7}, "a": {}, "full": {"concurrency": 3}}') \g /dev/null
select is(
  (select array_agg(concat_ws(' ', name, concurrency, requests_per_minute, tokens_per_minute) order by name) from trunkline.limits where name in ('a', 'b', 'full')),
  array['a', 'b 9 6 7', 'full 1 3'], 'what an operator changed or made stays, what is no longer declared goes'
);
select is(
  t.refusal($$select pg_temp.declare('{"b": {"x": 1}, "a": {"x": 1}, "C": {"x": 1}}')$$) - 'message' - 'must_be',
  '{"sqlstate": "TL022", "code": "invalid_policy", "argument": "declares", "task": "asks", "limit": "C"}'::jsonb,
  'the first of several that are refused, by its name, is told'
);

select * from finish();
