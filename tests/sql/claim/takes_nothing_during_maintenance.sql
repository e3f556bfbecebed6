-- CP-65, CP-62: an operator stops all claims with one switch, at once; what runs goes on.
\ir ../helpers/tools.sql
select plan(9);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select t.started('mail') as running \gset
set session authorization trunkline_producer;
select job_id as job from trunkline.enqueue(p_task => 'mail') \gset

set session authorization trunkline_worker;
select is(
  t.refusal($$select trunkline.set_setting(p_name => 'claims_enabled', p_value => 'false')$$) ->> 'sqlstate',
  '42501',
  'a worker may not touch the switch'
);
set session authorization trunkline_operator;
select is(trunkline.set_setting(p_name => 'claims_enabled', p_value => 'false'), 'false', 'an operator may');

set session authorization trunkline_worker;
select is_empty($$select * from trunkline.claim(p_worker => 'w1', p_limit => 9)$$, 'nothing is claimed');
select results_eq(
  $$select job_id, "position" ? 'for' from trunkline.claim(p_worker => 'w1', p_limit => 9, p_position => '{}')$$,
  $$values (null::uuid, true)$$,
  'a claim with a position gets one back and no job'
);
select is(
  (select verdict from trunkline.complete(p_worker => 'w1', p_jobs => array[:'running']::uuid[], p_attempts => array[1])),
  'ok',
  'what runs can end'
);
set session authorization trunkline_producer;
select is((trunkline.enqueue(p_task => 'mail')).created, true, 'new jobs are taken');
select is((select reason from trunkline.explain(p_job => :'job') limit 1), 'claims_disabled', 'explain names the switch');

set session authorization trunkline_operator;
select is((select ok from trunkline.health() where "check" = 'claims'), false, 'health shows that claims are off');
select trunkline.set_setting(p_name => 'claims_enabled', p_value => null) \g /dev/null
set session authorization trunkline_worker;
select is((select count(*) from trunkline.claim(p_worker => 'w1', p_limit => 9)), 2::bigint, 'afterwards claims go on');

select * from finish();
