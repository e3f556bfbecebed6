-- CP-26, CP-46: every step of an audited task is one event in the transaction of the step, with who did it.
\ir ../helpers/tools.sql
select plan(7);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail', p_audit => true, p_backoff => '{"base": 0}') \g /dev/null
begin;
select trunkline.enqueue(p_task => 'mail') \g /dev/null
rollback;
select job_id as job from trunkline.enqueue(p_task => 'mail', p_correlation_id => 'c', p_tenant => 'acme') \gset

set session authorization trunkline_worker;
select trunkline.claim(p_worker => 'w1') \g /dev/null
select trunkline.heartbeat(p_worker => 'w1', p_jobs => array[:'job']::uuid[], p_attempts => array[1]) \g /dev/null
select trunkline.fail(p_worker => 'w1', p_jobs => array[:'job']::uuid[], p_attempts => array[1]) \g /dev/null
select trunkline.claim(p_worker => 'w2') \g /dev/null
begin;
select trunkline.complete(p_worker => 'w2', p_jobs => array[:'job']::uuid[], p_attempts => array[2]) \g /dev/null
rollback;
select trunkline.complete(p_worker => 'w1', p_jobs => array[:'job']::uuid[], p_attempts => array[1]) \g /dev/null
select trunkline.complete(p_worker => 'w2', p_jobs => array[:'job']::uuid[], p_attempts => array[2]) \g /dev/null

set session authorization trunkline_operator;
select results_eq(
  'select kind, to_state, attempt, worker, actor from trunkline.events order by at',
  $$values
    ('enqueued', 'ready', 0, null, 'trunkline_producer'),
    ('claimed', 'running', 1, 'w1', 'trunkline_worker'),
    ('failed', 'scheduled', 1, 'w1', 'trunkline_worker'),
    ('promoted', 'ready', 1, null, 'trunkline_worker'),
    ('claimed', 'running', 2, 'w2', 'trunkline_worker'),
    ('completed', 'completed', 2, 'w2', 'trunkline_worker')$$,
  'each step once; what was rolled back or refused left none'
);
select is((select array_agg(distinct job_id) from trunkline.events), array[:'job']::uuid[], 'all of the one job');
select is((select array_agg(distinct tenant) from trunkline.events), array['acme'], 'with its tenant');
select is((select detail ->> 'correlation_id' from trunkline.events where kind = 'enqueued'), 'c', 'the first names the request');
select is(
  (select (detail ->> 'run_at')::timestamptz from trunkline.events where kind = 'enqueued'),
  (select created_at from trunkline.job(p_job => :'job')),
  'and the due time'
);
set trunkline.tenant = 'other';
select is_empty('select * from trunkline.events', 'another tenant sees none of it');
reset trunkline.tenant;
set session authorization trunkline_producer;
select is(t.refusal('select * from trunkline.events') ->> 'sqlstate', '42501', 'a producer may not read events');

select * from finish();
