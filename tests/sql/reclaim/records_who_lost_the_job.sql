-- CP-33, RC-11, RC-13, RC-14, RC-17, RC-36: every loss is an event with the losing worker and its times; the job keeps the latest.
\ir ../helpers/tools.sql
select plan(9);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_lease => '60 seconds') \g /dev/null
select t.started('mail') as job \gset
select (t.job(:'job')).claimed_at as claimed \gset
select trunkline_test.move_time('10 seconds') \g /dev/null
select trunkline.heartbeat(p_worker => 'w1', p_jobs => array[:'job']::uuid[], p_attempts => array[1]) \g /dev/null
select (t.job(:'job')).heartbeat_at as beat, (t.job(:'job')).lease_expires_at as expiry \gset
select trunkline_test.move_time('61 seconds') \g /dev/null
select trunkline.reclaim() \g /dev/null

select is((t.job(:'job')).last_error ->> 'type', 'lease_expired', 'the last error names the cause');
select is((t.job(:'job')).last_error ->> 'message', 'no heartbeat within the lease', 'in a constant text');
select is((t.job(:'job')).last_error ->> 'worker', 'w1', 'the worker that lost it, not the next one');
select is(((t.job(:'job')).last_error ->> 'claimed_at')::timestamptz, :'claimed'::timestamptz, 'when it had claimed');
select is(((t.job(:'job')).last_error ->> 'heartbeat_at')::timestamptz, :'beat'::timestamptz, 'its last heartbeat, kept as evidence');
select is(((t.job(:'job')).last_error ->> 'lease_expires_at')::timestamptz, :'expiry'::timestamptz, 'and when its lease ended');

select trunkline_test.move_time('61 seconds') \g /dev/null
select trunkline.claim(p_worker => 'w2') \g /dev/null
select trunkline_test.move_time('61 seconds') \g /dev/null
select trunkline.reclaim() \g /dev/null
set session authorization trunkline_operator;
select results_eq(
  'select job_id, attempt, worker, to_state, reason, error ->> $$type$$ from trunkline.reclaim_history',
  format($$values (%1$L::uuid, 2, 'w2', 'scheduled', 'lease_expired', 'lease_expired'), (%1$L, 1, 'w1', 'scheduled', 'lease_expired', 'lease_expired')$$, :'job'),
  'the history has one row a loss, newest first'
);
select is((select run_at from trunkline.reclaim_history limit 1), (t.job(:'job')).run_at, 'and tells when the job is due again');
select is((t.job(:'job')).last_error ->> 'worker', 'w2', 'the job shows the latest');

select * from finish();
