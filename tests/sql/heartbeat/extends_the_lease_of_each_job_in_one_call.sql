-- RF-71, CP-39, CP-40, TA-21, RC-07, RC-29, RC-31: a heartbeat renews the leases of all jobs of a worker from the present on.
\ir ../helpers/tools.sql
select plan(12);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'short', p_lease => '60 seconds') \g /dev/null
select trunkline.register_task(p_task => 'long', p_lease => '10 minutes') \g /dev/null
select t.started('short') as short \gset
select t.started('long') as long \gset
select t.started('short', 'w2') as silent \gset
select trunkline_test.move_time('50 seconds') \g /dev/null

select trunkline.clock() as before \gset
select results_eq(
  format(
    $$select job_id, verdict, state from trunkline.heartbeat(
      p_worker => 'w1', p_jobs => array[%1$L, %2$L, %3$L]::uuid[], p_attempts => array[1, 1, 1]
    )$$, :'long', :'short', :'silent'
  ),
  format($$values (%L::uuid, 'ok', 'running'), (%L, 'ok', 'running'), (%L, 'lost', null)$$, :'long', :'short', :'silent'),
  'an answer for each job in the order asked; a job of another worker is lost'
);
select ok((t.job(:'short')).heartbeat_at between :'before' and trunkline.clock(), 'the time of the heartbeat is the present, not a future one');
select is((t.job(:'short')).lease_expires_at - (t.job(:'short')).heartbeat_at, interval '60 seconds', 'the lease runs from it');
select is((t.job(:'long')).lease_expires_at - (t.job(:'long')).heartbeat_at, interval '10 minutes', 'each by its own task');
select is((t.job(:'silent')).heartbeat_at, null, 'the other one''s is untouched');

select trunkline_test.move_time('20 seconds') \g /dev/null
select results_eq('select job_id from trunkline.reclaim()', array[:'silent']::uuid[], 'only the silent one is taken back');
select is((t.job(:'short')).state, 'running', 'the other one runs on although its claim is older than its lease');
select trunkline_test.move_time('41 seconds') \g /dev/null
select results_eq('select job_id from trunkline.reclaim()', array[:'short']::uuid[], 'until its heartbeats stop');
select is(
  (select verdict from trunkline.heartbeat(p_worker => 'w1', p_jobs => array[:'short']::uuid[], p_attempts => array[1])),
  'lost',
  'then a heartbeat says so'
);

-- A lease that ran out but was not taken yet lives on.
select t.started('short', 'w3') as late \gset
select trunkline_test.move_time('70 seconds') \g /dev/null
select is(
  (select verdict from trunkline.heartbeat(p_worker => 'w3', p_jobs => array[:'late']::uuid[], p_attempts => array[1])),
  'ok',
  'a late heartbeat saves a job that nobody took'
);
select is_empty('select * from trunkline.reclaim()', 'and nobody takes it any more');
select is((select count(*) from trunkline.heartbeat(p_worker => 'w3', p_jobs => '{}', p_attempts => '{}')), 0::bigint, 'no jobs, no answers');

select * from finish();
