-- CP-37, CP-33, RC-17: each attempt has its own error on record; the latest goes with the job, cut to a bounded size.
\ir ../helpers/tools.sql
select plan(8);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_lease => '60 seconds', p_max_attempts => 9, p_backoff => '{"base": 0}') \g /dev/null
select t.started('mail') as job \gset
select trunkline.fail(p_worker => 'w1', p_jobs => array[:'job']::uuid[], p_attempts => array[1], p_errors => array['{"message": "first"}'::jsonb]) \g /dev/null
select is((select last_error ->> 'message' from trunkline.claim(p_worker => 'w2')), 'first', 'the next worker sees the last error');
select trunkline_test.move_time('61 seconds') \g /dev/null
select trunkline.reclaim() \g /dev/null
select trunkline_test.move_time('61 seconds') \g /dev/null
select trunkline.fail(p_worker => 'w3', p_jobs => array[job_id], p_attempts => array[attempt], p_errors => array['"just a text"'::jsonb])
from trunkline.claim(p_worker => 'w3') \g /dev/null

select is(
  (select jsonb_agg(e - 'at' - 'claimed_at' - 'heartbeat_at' - 'lease_expires_at' - 'lost_at') from jsonb_array_elements((t.job(:'job')).errors) as e),
  '[
    {"attempt": 1, "kind": "failed", "worker": "w1", "message": "first"},
    {"attempt": 2, "kind": "lost", "worker": "w2", "type": "lease_expired", "message": "no heartbeat within the lease"},
    {"attempt": 3, "kind": "failed", "worker": "w3", "message": "just a text"}
  ]'::jsonb,
  'errors of all attempts, newest last'
);
select is((t.job(:'job')).last_error, '{"message": "just a text"}'::jsonb, 'a text becomes an error object');

select t.started('mail') as long \gset
select trunkline.fail(
  p_worker => 'w1', p_jobs => array[:'long']::uuid[], p_attempts => array[1],
  p_errors => array[jsonb_build_object('type', 'Oops', 'message', repeat('x', 100000))]
) \g /dev/null
select is((t.job(:'long')).last_error ->> 'type', 'Oops', 'a huge error keeps its type');
select ok(pg_column_size((t.job(:'long')).last_error) <= 1024, 'and goes with the job cut to a kilobyte');
select is((t.job(:'long')).last_error ->> 'truncated', 'true', 'which is said');
select ok(octet_length((t.event(:'long')).detail -> 'error' ->> 'message') between 1024 and 8192, 'the event keeps more of it');

select trunkline.complete(p_worker => 'w3', p_jobs => array[job_id], p_attempts => array[attempt])
from trunkline.claim(p_worker => 'w3', p_limit => 1) \g /dev/null
select is(jsonb_array_length((t.job(:'job')).errors), 3, 'a later success keeps them');

select * from finish();
