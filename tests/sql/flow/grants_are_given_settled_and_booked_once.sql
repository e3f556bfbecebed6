-- A grant is given while there is room, is settled once, and the ledger has each call once for each limit.
\ir ../helpers/tools.sql
\ir ../helpers/cases.sql
\ir ../../support/internals/frozen.sql
select plan(48);

create function t.bucket(p_name text) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select jsonb_strip_nulls(jsonb_build_object(
    'in_use', b.in_use, 'requests', b.requests_of_minute, 'tokens', b.tokens_of_minute, 'spent', b.spent, 'refused', b.refused, 'refused_at', t.after_noon(b.refused_at), 'free_at', t.after_noon(b.free_at)
  ))
  from trunkline.buckets as b where b.name = p_name
$$;
create table t.given (name text, grant_id uuid);
grant all on t.given to public;
-- The answer of acquire with times after noon; the id of a grant is kept under a name.
create function pg_temp.ask(p_name text, p_limit text, p_more text default '') returns jsonb language plpgsql as $$
declare
  v_answer trunkline.grant_answer;
begin
  execute format('select * from trunkline.acquire(%L%s)', p_limit, p_more) into v_answer;
  if v_answer.grant_id is not null then
    insert into t.given values (p_name, v_answer.grant_id);
  end if;
  return jsonb_strip_nulls(to_jsonb(v_answer) - 'grant_id' || jsonb_build_object('free_at', t.after_noon(v_answer.free_at), 'expires_at', t.after_noon(v_answer.expires_at)));
end;
$$;
create function pg_temp.settle(p_name text, p_actual jsonb default null) returns text language sql as $$
  select trunkline.settle(g.grant_id, p_actual) from t.given as g where g.name = p_name
$$;
create function t.usage() returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select jsonb_agg(jsonb_build_array(u.limit, u.task, u.tenant, u.calls, u.requests, u.tokens, u.units, u.cost) order by u.limit, u.task, u.tenant) from trunkline.usage as u
$$;
set session authorization trunkline_operator;
select
  trunkline.set_limit('slots', '{"concurrency": 2}'), trunkline.set_limit('rpm', '{"requests_per_minute": 3}'), trunkline.set_limit('tpm', '{"tokens_per_minute": 100}'),
  trunkline.set_limit('model/{model}', '{"tokens_per_minute": 50, "concurrency": 5}'), trunkline.set_limit('own/{tenant}', '{"quota": 10, "quota_unit": "requests", "quota_period": "day"}'),
  trunkline.set_limit('bytes', '{"quota": 200000, "quota_unit": "bytes", "quota_period": "day"}'), trunkline.set_limit('off', '{"concurrency": 9}', 'maintenance'),
  trunkline.register_task('ask', p_limits => array['tpm', 'own/{tenant}'], p_cost => '{"tokens": 30}') \g /dev/null
set session authorization trunkline_worker;
insert into t.cases (call, expected) values
  ($$acquire('rpm', p_ttl => '1 second')$$, 'accepted'), ($$acquire('rpm', p_ttl => '0.999 seconds')$$, 'p_limit, p_keys, p_job, p_attempt or p_ttl'),
  ($$acquire('rpm', p_ttl => '1 day')$$, 'accepted'), ($$acquire('rpm', p_ttl => '1 day 1 second')$$, 'p_limit, p_keys, p_job, p_attempt or p_ttl'),
  ($$acquire(repeat('x', 400))$$, 'unknown_limit'), ($$acquire(repeat('x', 401))$$, 'p_limit, p_keys, p_job, p_attempt or p_ttl'),
  ($$acquire('rpm', p_tenant => repeat('x', 400))$$, 'accepted'), ($$acquire('rpm', p_tenant => repeat('x', 401))$$, 'p_limit, p_keys, p_job, p_attempt or p_ttl'),
  ($$acquire('model/{model}')$$, 'limit_key_missing'), ($$acquire('model/{model}', p_keys => '{"model": ""}')$$, 'limit_key_missing'),
  ($$acquire('model/{model}', p_keys => jsonb_build_object('model', repeat('x', 394)))$$, 'accepted'), ($$acquire('model/{model}', p_keys => jsonb_build_object('model', repeat('x', 395)))$$, 'limit_key_missing'),
  ($$acquire('rpm', '{"requests": 3}')$$, 'accepted'), ($$acquire('rpm', '{"requests": 4}')$$, 'cost_over_limit'), ($$acquire('tpm', '{"tokens": 101}')$$, 'cost_over_limit'),
  ($$acquire('rpm', '{"pages": 1}')$$, 'invalid_cost'), ($$acquire('rpm', '{"requests": 1.5}')$$, 'invalid_cost'), ($$acquire('rpm', '{"requests": "1"}')$$, 'invalid_cost'), ($$acquire('rpm', null)$$, 'invalid_cost'),
  ($$settle(gen_random_uuid(), '{"tokens": 1000000000000}')$$, 'accepted'), ($$settle(gen_random_uuid(), '{"tokens": 1000000000001}')$$, 'invalid_cost'),
  ($$settle(gen_random_uuid(), '{"bytes": 1000000000000}')$$, 'accepted'), ($$settle(gen_random_uuid(), '{"bytes": -1}')$$, 'invalid_cost'),
  ($$settle(gen_random_uuid(), '{"cost": 1000000000000}')$$, 'accepted'), ($$settle(gen_random_uuid(), '{"cost": 1000000000000.01}')$$, 'invalid_cost'),
  ($$settle(gen_random_uuid(), '{"cost": -0.01}')$$, 'invalid_cost'), ($$settle(gen_random_uuid(), '{"cost": "1"}')$$, 'invalid_cost'), ($$settle(gen_random_uuid(), '[]')$$, 'invalid_cost'),
  ($$settle(gen_random_uuid(), '{"cost": null, "tokens": null}')$$, 'accepted'), ($$settle(gen_random_uuid(), '{"calls": 1}')$$, 'invalid_cost');
select is_empty('select * from t.surprises()', 'arguments are accepted up to their bounds');

select is(
  pg_temp.ask('first', 'slots'),
  '{"granted": true, "expires_at": "00:05:00"}',
  'a slot'
);
select is(
  pg_temp.ask('second', 'slots', ', p_ttl => ''1 minute'''),
  '{"granted": true, "expires_at": "00:01:00"}',
  'another, for longer'
);
select is(
  pg_temp.ask('third', 'slots'),
  '{"reason": "concurrency", "free_at": "00:00:00", "granted": false}',
  'then there is none'
);
select is(
  t.bucket('slots'),
  '{"in_use": 2, "tokens": 0, "refused": 1, "requests": 0, "refused_at": "00:00:00"}',
  'and that is counted'
);
select is(
  pg_temp.settle('first'),
  'settled',
  'settling'
);
select is(
  pg_temp.settle('first'),
  'already',
  'once'
);
select is(
  trunkline.settle('00000000-0000-7000-8000-000000000000'),
  'unknown',
  'what nobody was given'
);
select is(
  t.bucket('slots'),
  '{"in_use": 1, "tokens": 0, "refused": 1, "requests": 0, "refused_at": "00:00:00"}',
  'frees it'
);
select is(
  pg_temp.ask('fourth', 'slots'),
  '{"granted": true, "expires_at": "00:05:00"}',
  'for the next'
);
select trunkline_test.move_time('59.999 seconds') \g /dev/null
select is(
  t.bucket('slots'),
  '{"in_use": 2, "tokens": 0, "refused": 1, "requests": 0, "refused_at": "00:00:00"}',
  'a grant lasts as long as it says'
);
select trunkline_test.move_time('0.001 seconds') \g /dev/null
select is(
  t.bucket('slots'),
  '{"in_use": 1, "tokens": 0, "refused": 1, "requests": 0, "refused_at": "00:00:00"}',
  'and no longer'
);
select is(
  pg_temp.settle('second'),
  'settled',
  'settled late all the same'
);
select is(
  jsonb_build_array(pg_temp.ask('r1', 'rpm'), pg_temp.ask('r2', 'rpm', ', ''{"requests": 2}'''), pg_temp.ask('r3', 'rpm')),
  '[{"granted": true, "expires_at": "00:06:00"}, {"granted": true, "expires_at": "00:06:00"}, {"reason": "requests_per_minute", "free_at": "00:02:02", "granted": false}]',
  'three requests'
);
select is(
  t.bucket('rpm'),
  '{"in_use": 0, "tokens": 0, "free_at": "00:02:02", "refused": 1, "requests": 3, "refused_at": "00:01:00"}',
  'as the bucket shows'
);
select is(
  pg_temp.settle('r2', '{"requests": 0}'),
  'settled',
  'none was used'
);
select is(
  t.bucket('rpm'),
  '{"in_use": 0, "tokens": 0, "free_at": "00:02:02", "refused": 1, "requests": 1, "refused_at": "00:01:00"}',
  'which gives them back'
);
select is(
  jsonb_build_array(pg_temp.ask('t1', 'tpm', ', ''{"tokens": 60}'''), pg_temp.ask('t2', 'tpm', ', ''{"tokens": 50}'''), pg_temp.ask('t3', 'tpm', ', ''{"tokens": 40}''')),
  '[{"granted": true, "expires_at": "00:06:00"}, {"reason": "tokens_per_minute", "free_at": "00:02:02", "granted": false}, {"granted": true, "expires_at": "00:06:00"}]',
  'tokens'
);
select is(
  pg_temp.settle('t1', '{"tokens": 90, "cost": 1.25}'),
  'settled',
  'more were used'
);
select is(
  t.bucket('tpm'),
  '{"in_use": 0, "tokens": 130, "free_at": "00:02:02", "refused": 1, "requests": 2, "refused_at": "00:01:00"}',
  'than there were'
);
select is(pg_temp.settle('t3', '{"bytes": 70}'), 'settled', 'bytes are no units of a limit that does not count them');
select is(
  pg_temp.ask('off', 'off'),
  '{"reason": "maintenance", "granted": false}',
  'a limit that is switched off gives nothing'
);
select is(
  jsonb_build_array(
  pg_temp.ask('m1', 'model/{model}', ', ''{"tokens": 50}'', p_keys => ''{"model": "a"}'''), pg_temp.ask('m2', 'model/{model}', ', ''{"tokens": 50}'', p_keys => ''{"model": "b"}'''), pg_temp.ask('m3', 'model/a', ', ''{"tokens": 1}''')
),
  '[{"granted": true, "expires_at": "00:06:00"}, {"granted": true, "expires_at": "00:06:00"}, {"reason": "tokens_per_minute", "free_at": "00:02:02", "granted": false}]',
  'each key has its own'
);
select is(
  jsonb_build_array(t.bucket('model/a'), t.bucket('model/b')),
  '[{"in_use": 1, "tokens": 50, "free_at": "00:02:02", "refused": 1, "requests": 1, "refused_at": "00:01:00"}, {"in_use": 1, "tokens": 50, "free_at": "00:02:02", "refused": 0, "requests": 1}]',
  'shown by name'
);
select is(
  jsonb_build_array(pg_temp.ask('b1', 'bytes'), t.bucket('bytes'), pg_temp.settle('b1', '{"bytes": 120000}')),
  '[{"granted": true, "expires_at": "00:06:00"}, null, "settled"]',
  'bytes are estimated'
);
select is(
  t.bucket('bytes'),
  '{"spent": 120000, "in_use": 0, "tokens": 0, "refused": 0, "requests": 0}',
  'and settled'
);

-- Calls of a job: the first takes over what its claim has charged.
select trunkline_test.move_time('2 minutes') \g /dev/null
set session authorization trunkline_producer;
select job_id as job from trunkline.enqueue('ask', p_tenant => 'acme') \gset
select set_config('test.job', :'job', false) \g /dev/null
set session authorization trunkline_worker;
select trunkline.claim('w1') \g /dev/null
select is(
  jsonb_build_array(t.bucket('tpm'), t.bucket('own/acme')),
  '[{"in_use": 0, "tokens": 30, "refused": 1, "requests": 1, "refused_at": "00:01:00"}, {"spent": 1, "in_use": 0, "tokens": 0, "refused": 0, "requests": 0}]',
  'a claim has charged it'
);
create function pg_temp.call(p_name text, p_cost text default '{}') returns jsonb language sql as $$
  select pg_temp.ask(p_name, 'tpm', format(', %L, p_job => %L, p_attempt => 1', p_cost, current_setting('test.job')))
$$;
select is(
  pg_temp.call('c1'),
  '{"granted": true, "expires_at": "00:23:00"}',
  'the first call within a second takes it over'
);
select is(
  jsonb_build_array(t.bucket('tpm'), t.bucket('own/acme')),
  '[{"in_use": 0, "tokens": 30, "refused": 1, "requests": 1, "refused_at": "00:01:00"}, {"spent": 1, "in_use": 0, "tokens": 0, "refused": 0, "requests": 0}]',
  'without a charge'
);
select is(
  pg_temp.call('c2'),
  '{"granted": true, "expires_at": "00:23:00"}',
  'the second is charged what such calls used'
);
select is(
  jsonb_build_array(t.bucket('tpm'), t.bucket('own/acme')),
  '[{"in_use": 0, "tokens": 60, "refused": 1, "requests": 2, "refused_at": "00:01:00"}, {"spent": 2, "in_use": 0, "tokens": 0, "refused": 0, "requests": 0}]',
  'as shown'
);
select is(
  jsonb_build_array(pg_temp.settle('c1', '{"tokens": 10, "cost": 2}'), pg_temp.settle('c2', '{"tokens": 20, "requests": 3}')),
  '["settled", "settled"]',
  'settled with less'
);
select is(
  jsonb_build_array(t.bucket('tpm'), t.bucket('own/acme')),
  '[{"in_use": 0, "tokens": 30, "refused": 1, "requests": 4, "refused_at": "00:01:00"}, {"spent": 4, "in_use": 0, "tokens": 0, "refused": 0, "requests": 0}]',
  'in both limits'
);
select is(
  trunkline.settle_job(:'job', 1, '{"tokens": 1}'),
  'already',
  'the job itself has nothing left to settle'
);
select is(
  trunkline.settle_job(:'job', 2, '{"tokens": 1}'),
  'unknown',
  'another attempt is unknown'
);
select is(
  pg_temp.call('c3', '{"tokens": 71}'),
  '{"reason": "tokens_per_minute", "free_at": "00:04:02", "granted": false}',
  'more than is left'
);
select is(
  pg_temp.call('c4', '{"tokens": 70}'),
  '{"granted": true, "expires_at": "00:23:00"}',
  'just what is left'
);
select is(
  jsonb_build_array(t.bucket('tpm'), t.bucket('own/acme')),
  '[{"in_use": 0, "tokens": 100, "free_at": "00:04:02", "refused": 2, "requests": 5, "refused_at": "00:03:00"}, {"spent": 5, "in_use": 0, "tokens": 0, "refused": 0, "requests": 0}]',
  'the slot of the job is none of a call'
);
set session authorization trunkline_operator;
select is(
  t.usage(),
  '[["bytes", null, null, 1, 1, 0, 120000, 0], ["own/{tenant}", "ask", "acme", 2, 4, 30, 0, 0], ["slots", null, null, 2, 2, 0, 0, 0], ["tpm", "ask", "acme", 2, 4, 30, 0, 2], ["tpm", null, null, 2, 2, 130, 0, 1.25]]',
  'the ledger'
);
select is(
  (select jsonb_agg(to_jsonb(u) order by u.limit) from trunkline.usage_of_job(:'job') as u),
  '[{"cost": 0, "name": "own/acme", "calls": 2, "limit": "own/{tenant}", "units": 0, "tokens": 30, "attempt": 1, "requests": 4}, {"cost": 2, "name": "tpm", "calls": 2, "limit": "tpm", "units": 0, "tokens": 30, "attempt": 1, "requests": 4}]',
  'of the job'
);
set session authorization trunkline_worker;
select trunkline.complete('w1', array[:'job']::uuid[], array[1]) \g /dev/null
set session authorization trunkline_operator;
select is(
  (select jsonb_agg(to_jsonb(u) order by u.limit) from trunkline.usage_of_job(:'job') as u),
  '[{"cost": 0, "name": "own/acme", "calls": 3, "limit": "own/{tenant}", "units": 0, "tokens": 100, "attempt": 1, "requests": 5}, {"cost": 2, "name": "tpm", "calls": 3, "limit": "tpm", "units": 0, "tokens": 100, "attempt": 1, "requests": 5}]',
  'with the grant that nobody settled, once it has ended'
);
set trunkline.tenant = 'other';
select is(
  jsonb_build_array(t.usage(), (select count(*) from trunkline.usage_of_job(:'job'))),
  '[null, 0]',
  'not for another tenant'
);
set trunkline.tenant = 'acme';
select is(
  (select count(*) from trunkline.usage_of_job(:'job')),
  '2',
  'but for its own'
);
reset trunkline.tenant;
-- A day and the sums of days later nothing is lost.
select trunkline_test.move_time('26 hours') \g /dev/null
select trunkline.sweep_buckets(), trunkline.sweep_buckets() \g /dev/null
select is(
  t.usage(),
  '[["bytes", null, null, 1, 1, 0, 120000, 0], ["model/{model}", null, null, 2, 2, 100, 0, 0], ["own/{tenant}", "ask", "acme", 3, 5, 100, 0, 0], ["rpm", null, null, 1, 1, 0, 0, 0], ["slots", null, null, 3, 3, 0, 0, 0], ["tpm", "ask", "acme", 3, 5, 100, 0, 2], ["tpm", null, null, 2, 2, 130, 0, 1.25]]',
  'two days later'
);
-- A late call is charged when it is made.
set session authorization trunkline_producer;
select job_id as late from trunkline.enqueue('ask', p_tenant => 'acme') \gset
select set_config('test.job', :'late', false) \g /dev/null
set session authorization trunkline_worker;
select trunkline.claim('w1') \g /dev/null
select trunkline_test.move_time('1 second') \g /dev/null
select is(
  pg_temp.call('l1'),
  '{"granted": true, "expires_at": "1 day 02:23:00"}',
  'a second after the claim'
);
select is(
  t.bucket('tpm'),
  '{"in_use": 0, "tokens": 10, "refused": 2, "requests": 1, "refused_at": "00:03:00"}',
  'is charged then'
);
select trunkline_test.move_time('61 seconds') \g /dev/null
select is(
  t.bucket('tpm'),
  '{"in_use": 0, "tokens": 10, "refused": 2, "requests": 1, "refused_at": "00:03:00"}',
  'not at the claim'
);
select is(
  t.refusal(format($$select trunkline.acquire('tpm', p_job => %L, p_attempt => 2)$$, :'late')) - 'message' - 'hint' - 'job',
  '{"code": "stale_attempt", "attempt": 2, "sqlstate": "TL009"}',
  'an attempt that has ended'
);

select * from finish();
