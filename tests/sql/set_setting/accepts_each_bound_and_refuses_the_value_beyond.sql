-- Each setting is accepted up to both of its bounds and refused beyond them, with all that is known of it.
\ir ../helpers/tools.sql
\ir ../helpers/cases.sql
\ir ../../support/internals/frozen.sql
select plan(9);

set session authorization trunkline_operator;
-- Every setting of a number or a time at its bounds; the lease and the heartbeat depend on each other.
insert into t.cases (call, expected)
select format('set_setting(%L, %L)', s.name, v.value), v.expected
from trunkline.settings as s
cross join lateral (values
  (s.minimum, 'accepted'), (s.maximum, 'accepted'),
  (case s.kind when 'integer' then (s.minimum::bigint - 1)::text else (s.minimum::interval - interval '1 microsecond')::text end, 'invalid_setting'),
  (case s.kind when 'integer' then (s.maximum::bigint + 1)::text else (s.maximum::interval + interval '1 microsecond')::text end, 'invalid_setting')
) as v (value, expected)
where s.minimum is not null and s.name not in ('lease', 'heartbeat_interval');
insert into t.cases (call, expected) values
  ($$set_setting('lease', '90 seconds')$$, 'accepted'), ($$set_setting('lease', '89.999 seconds')$$, 'invalid_setting'),
  ($$set_setting('lease', '365 days')$$, 'accepted'), ($$set_setting('lease', '365 days 1 second')$$, 'invalid_setting'),
  ($$set_setting('heartbeat_interval', '100 seconds')$$, 'accepted'), ($$set_setting('heartbeat_interval', '100.001 seconds')$$, 'invalid_setting'),
  ($$set_setting('heartbeat_interval', '1 second')$$, 'accepted'), ($$set_setting('heartbeat_interval', '0.999 seconds')$$, 'invalid_setting'),
  ($$set_setting('tenant_claim', repeat('x', 200))$$, 'accepted'), ($$set_setting('tenant_claim', repeat('x', 201))$$, 'invalid_setting'),
  ($$set_setting('tenant_claim', '')$$, 'invalid_setting'), ($$set_setting('claims_enabled', 'off')$$, 'accepted'),
  ($$set_setting('claims_enabled', '2')$$, 'invalid_setting'), ($$set_setting('crash_limit', '1.5')$$, 'invalid_setting'),
  ($$set_setting('crash_limit', '99999999999')$$, 'invalid_setting'), ($$set_setting(null, '1')$$, 'unknown_setting');
select ok((select count(*) > 60 from t.cases), 'there are many of them');
select is_empty('select * from t.surprises()', 'every value is accepted or refused as it should be');

select is(
  t.refusal($$select trunkline.set_setting('lease', '1 second')$$) - 'message',
  '{"sqlstate": "TL021", "code": "invalid_setting", "setting": "lease", "value": "1 second", "kind": "interval", "minimum": "3 seconds", "maximum": "365 days",
    "rule": "lease >= 3 x heartbeat_interval"}'::jsonb,
  'what is wrong, in full'
);
select is(
  t.refusal($$select trunkline.set_setting('crash_limit', '0')$$) - 'message',
  '{"sqlstate": "TL021", "code": "invalid_setting", "setting": "crash_limit", "value": "0", "kind": "integer", "minimum": "1", "maximum": "1000", "rule": null}'::jsonb,
  'the rule is only told where it matters'
);
select trunkline.set_setting('crash_limit', '7'), trunkline.set_setting('tenant_claim', 'org') \g /dev/null
select is(
  (select jsonb_object_agg(s.name, to_jsonb(s) - '{name,description}'::text[] || jsonb_build_object('updated_at', t.after_noon(s.updated_at))) from trunkline.settings as s where s.name in ('crash_limit', 'tenant_claim', 'max_deferrals')),
  '{"crash_limit": {"value": "7", "origin": "operator", "kind": "integer", "default_value": "3", "minimum": "1", "maximum": "1000", "updated_at": "00:00:00", "updated_by": "trunkline_operator"},
    "tenant_claim": {"value": "org", "origin": "operator", "kind": "text", "default_value": "tenant", "minimum": null, "maximum": null, "updated_at": "00:00:00", "updated_by": "trunkline_operator"},
    "max_deferrals": {"value": "20", "origin": "default", "kind": "integer", "default_value": "20", "minimum": "1", "maximum": "1000000", "updated_at": null, "updated_by": null}}'::jsonb,
  'only the settings named have changed'
);
select trunkline.set_setting('crash_limit', null) \g /dev/null
select is(
  (select concat_ws(' ', s.value, s.origin, s.updated_at, s.updated_by) from trunkline.settings as s where s.name = 'crash_limit'), '3 default', 'the default leaves no trace'
);
set request.jwt.claims = '{"tenant": "a", "org": "b"}';
select is(trunkline.tenant_scope(), 'b', 'the claim that names the tenant is a setting');
reset request.jwt.claims;

-- A detail that is too large for the log is cut, value by value.
select 65536 - pg_column_size(jsonb_build_object('setting', repeat('x', 1000), 'known', (select jsonb_agg(name) from trunkline.settings))) + 1000 as length \gset
select is(
  length(t.refusal(format($$select trunkline.set_setting(repeat('x', %s), '1')$$, :length)) ->> 'setting'), :length, 'up to 64 KiB it is told in full'
);
select is(
  (select (r ->> 'setting') || (r -> 'known' ->> 0) from t.refusal(format($$select trunkline.set_setting(repeat('x', %s), '1')$$, :length + 1)) as r),
  repeat('x', 200) || '...' || 'allow_unknown_tasks', 'beyond that the long values are cut, the short ones are not'
);

select * from finish();
