-- CP-27, CP-29, TA-14, RC-04, RC-14: a claim starts an attempt under a lease from the present moment on.
\ir ../helpers/tools.sql
select plan(14);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail', p_lease => '100 seconds', p_max_attempts => 7) \g /dev/null
select job_id as job from trunkline.enqueue(
  p_task => 'mail', p_payload => '{"to": "a"}', p_tenant => 'acme', p_correlation_id => 'c1', p_tags => array['x']
) \gset

set session authorization trunkline_worker;
select trunkline.clock() as before \gset
select * from trunkline.claim(p_worker => 'w1') \gset
select is(:'job_id'::uuid, :'job'::uuid, 'the job is returned');
select is(:'task' || ' ' || :'queue' || ' ' || :'tenant' || ' ' || :'correlation_id' || ' ' || :'tags', 'mail default acme c1 {x}', 'with what was asked');
select is(:'payload'::jsonb, '{"to": "a"}'::jsonb, 'and its payload');
select is(:attempt, 1, 'as attempt one');
select is(:failures || ' of ' || :max_attempts, '0 of 7', 'with its budget');
select ok(:'claimed_at'::timestamptz between :'before' and trunkline.clock(), 'claimed at the present moment, not a future one');
select is(:'lease_expires_at'::timestamptz - :'claimed_at'::timestamptz, interval '100 seconds', 'under the lease of its task');
select is(:'hard_deadline'::timestamptz - :'claimed_at'::timestamptz, interval '400 seconds', 'with a hard limit of four leases');

select is((t.job(:'job')).state, 'running', 'the job runs');
select is((t.job(:'job')).worker, 'w1', 'its worker is known');
select is((t.job(:'job')).heartbeat_at, null, 'no heartbeat was sent yet');

-- A second attempt starts clean.
select trunkline.heartbeat(p_worker => 'w1', p_jobs => array[:'job']::uuid[], p_attempts => array[1]) \g /dev/null
select trunkline.progress(p_worker => 'w1', p_job => :'job', p_attempt => 1, p_percent => 80) \g /dev/null
select trunkline.fail(p_worker => 'w1', p_jobs => array[:'job']::uuid[], p_attempts => array[1], p_delays => array[interval '0']) \g /dev/null
select is((select attempt from trunkline.claim(p_worker => 'w2')), 2, 'the next claim is attempt two');
select is((t.job(:'job')).heartbeat_at, null, 'the heartbeat of the first does not count for it');
select is((t.job(:'job')).progress, null, 'nor does its progress');

select * from finish();
