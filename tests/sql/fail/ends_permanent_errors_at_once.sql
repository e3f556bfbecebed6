-- RF-66, EX-33, CP-48: an error that no retry can mend ends the job at once; each job of a batch is judged by itself.
\ir ../helpers/tools.sql
select plan(7);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_max_attempts => 5) \g /dev/null
select t.started('mail') as permanent \gset
select t.started('mail') as passing \gset
select t.started('mail') as unsaid \gset

select results_eq(
  format(
    $$select verdict, state from trunkline.fail(
      p_worker => 'w1', p_jobs => array[%L, %L, %L]::uuid[], p_attempts => array[1, 1, 1],
      p_errors => array['{"type": "NotFound", "message": "document gone"}', '{"message": "busy"}', null]::jsonb[],
      p_retryable => array[false, true, null]
    )$$, :'permanent', :'passing', :'unsaid'
  ),
  $$values ('ok', 'dead'), ('ok', 'scheduled'), ('ok', 'scheduled')$$,
  'one for good, two to be tried again'
);
select is((t.job(:'permanent')).reason, 'not_retryable', 'the reason is that it cannot be mended');
select is((t.job(:'permanent')).failures, 1, 'it failed once');
select is((t.job(:'permanent')).last_error, '{"type": "NotFound", "message": "document gone"}'::jsonb, 'its error is kept as it was given');
select is((t.job(:'passing')).last_error ->> 'message', 'busy', 'each job has its own error');
select is((t.job(:'unsaid')).last_error, null, 'or none');
select is((t.event(:'permanent')).detail ->> 'retryable', 'false', 'the event tells the worker''s judgement');

select * from finish();
