-- CP-38, CP-64: a setting is checked when it is written: type, range, and that three heartbeats fit into the lease.
\ir ../helpers/tools.sql
select plan(16);

set session authorization trunkline_operator;
create function pg_temp.code(p_name text, p_value text) returns text language sql as $$
  select t.refusal(format('select trunkline.set_setting(p_name => %L, p_value => %L)', p_name, p_value)) ->> 'code'
$$;
select is(pg_temp.code('lease', '89 seconds'), 'invalid_setting', 'a lease below three heartbeats of thirty seconds');
select is(pg_temp.code('lease', '90 seconds'), null, 'three are enough');
select is(pg_temp.code('heartbeat_interval', '31 seconds'), 'invalid_setting', 'then a longer heartbeat does not fit');
select is(
  t.refusal($$select trunkline.set_setting(p_name => 'heartbeat_interval', p_value => '31 seconds')$$) ->> 'rule',
  'lease >= 3 x heartbeat_interval',
  'and the refusal says why'
);
select is(pg_temp.code('heartbeat_interval', '10 seconds'), null, 'a shorter one does');
select is(pg_temp.code('lease', '30 seconds'), null, 'and lets the lease be shorter');
select is(pg_temp.code('heartbeat_interval', null), 'invalid_setting', 'the default is checked as well when it is given back');
select is(pg_temp.code('lease', 'soon'), 'invalid_setting', 'no interval');
select is(pg_temp.code('lease', '-1 second'), 'invalid_setting', 'below zero');
select is(pg_temp.code('pulse_misses', '2.5'), 'invalid_setting', 'no whole number');
select is(pg_temp.code('pulse_misses', '0'), 'invalid_setting', 'out of range');
select is(pg_temp.code('claims_enabled', 'maybe'), 'invalid_setting', 'neither true nor false');
select is(pg_temp.code('tenant_claim', ''), 'invalid_setting', 'an empty text');
select is(
  (select (r ->> 'code') || ' ' || ((r -> 'known') ? 'lease')::text from t.refusal($$select trunkline.set_setting(p_name => 'leese', p_value => '1')$$) as r),
  'unknown_setting true',
  'an unknown setting is refused with the known ones'
);
select is(
  t.refusal($$select trunkline.set_setting(p_name => 'leese', p_value => '1')$$) -> 'known',
  (select jsonb_agg(s.name order by s.name) from trunkline.settings as s),
  'in the order of their names, whichever of them were changed'
);
select is(
  (select array_agg(name || '=' || value order by name) from trunkline.settings where origin = 'operator'),
  array['heartbeat_interval=10 seconds', 'lease=30 seconds'],
  'only what was good is in force'
);

select * from finish();
