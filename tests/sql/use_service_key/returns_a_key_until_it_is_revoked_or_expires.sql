-- A service key is stored as a hash, returned while it works, and its use is recorded once a minute.
\ir ../helpers/tools.sql
select plan(14);

set session authorization trunkline_operator;
select trunkline.create_service_key('aaaaaaaaaaaa', repeat('0a', 32), 'deploy', 'producer', 'acme') \g /dev/null
select trunkline.create_service_key('bbbbbbbbbbbb', repeat('0b', 32), 'short', 'reader', null, trunkline.clock() + interval '1 hour') \g /dev/null
select results_eq($$select name, role, tenant, last_used_at, active from trunkline.service_keys where key_id = 'aaaaaaaaaaaa'$$, $$values ('deploy', 'producer', 'acme', null::timestamptz, true)$$, 'the view shows it');
select results_eq($$select name, role, tenant, secret_hash, expires_at from trunkline.use_service_key('aaaaaaaaaaaa')$$, $$values ('deploy', 'producer', 'acme', repeat('0a', 32), null::timestamptz)$$, 'it is returned with its hash');
select last_used_at as used from trunkline.service_keys where key_id = 'aaaaaaaaaaaa' \gset
select isnt(:'used'::text, ''::text, 'its use is recorded');
select trunkline_test.move_time('30 seconds') \g /dev/null
select is((select count(*) from trunkline.use_service_key('aaaaaaaaaaaa')), 1::bigint, 'it is returned again');
select is((select last_used_at from trunkline.service_keys where key_id = 'aaaaaaaaaaaa'), :'used'::timestamptz, 'within a minute nothing is written');
select trunkline_test.move_time('31 seconds') \g /dev/null
select trunkline.use_service_key('aaaaaaaaaaaa') \g /dev/null
select ok((select last_used_at > :'used'::timestamptz from trunkline.service_keys where key_id = 'aaaaaaaaaaaa'), 'after a minute it is');
select trunkline_test.move_time('1 hour') \g /dev/null
select is_empty($$select * from trunkline.use_service_key('bbbbbbbbbbbb')$$, 'an expired one is not returned');
select is((select active from trunkline.service_keys where key_id = 'bbbbbbbbbbbb'), false, 'nor active');
select is(trunkline.revoke_service_key('aaaaaaaaaaaa', 'leaked'), true, 'it is revoked');
select is(trunkline.revoke_service_key('aaaaaaaaaaaa'), false, 'once');
select is_empty($$select * from trunkline.use_service_key('aaaaaaaaaaaa')$$, 'then it is not returned');
select is_empty($$select * from trunkline.use_service_key('cccccccccccc')$$, 'nor is an unknown one');
select is(t.refusal($$select trunkline.create_service_key('aaaaaaaaaaaa', repeat('0', 64), 'again', 'reader')$$) ->> 'argument', 'p_key', 'an id is used once');
select is((select string_agg(action || coalesce(' ' || reason, ''), ', ' order by log_id) from trunkline.operator_log where object = 'aaaaaaaaaaaa'), 'create_service_key, revoke_service_key leaked', 'the operator log has both');

select * from finish();
