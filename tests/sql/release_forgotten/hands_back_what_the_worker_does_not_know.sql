-- RC-27: a claim whose answer was lost leaves attempts that nobody runs; their worker hands them back without waiting for the lease.
\ir ../helpers/tools.sql
select plan(8);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select t.started('mail') as known \gset
select t.started('mail') as forgotten \gset
select t.started('mail', 'w2') as theirs \gset
set session authorization trunkline_worker;
select results_eq(
  format('select job_id, attempt, verdict, state from trunkline.release_forgotten(p_worker => %L, p_known => array[%L]::uuid[])', 'w1', :'known'),
  format($$values (%L::uuid, 1, 'ok', 'ready')$$, :'forgotten'),
  'what the worker does not name is handed back'
);
select is((t.job(:'known')).state, 'running', 'what it names goes on');
select is((t.job(:'theirs')).state, 'running', 'so does what another one runs');
select is((t.job(:'forgotten')).failures, 0, 'no failure is counted');
select is((t.event(:'forgotten')).kind, 'released', 'and it is on record');
select is_empty(
  format('select * from trunkline.release_forgotten(p_worker => %L, p_known => array[%L]::uuid[])', 'w1', :'known'),
  'a second call finds nothing'
);
select is((select count(*) from trunkline.release_forgotten(p_worker => 'w1', p_known => '{}')), 1::bigint, 'who knows none hands back all');
select is(t.refusal($$select trunkline.release_forgotten(p_worker => 'w1', p_known => null)$$) ->> 'argument', 'p_known', 'who says nothing is refused');

select * from finish();
