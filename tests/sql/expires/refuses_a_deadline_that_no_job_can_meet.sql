-- T19: expires_at has to lie after now and after the time from which the job may start.
\ir ../helpers/tools.sql
select plan(7);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail') \g /dev/null

select is(
  t.refusal($$select trunkline.enqueue(p_task => 'mail', p_expires_at => trunkline.clock() - interval '1 second')$$)
    - 'message',
  '{"sqlstate": "TL028", "code": "invalid_argument", "argument": "p_expires_at", "must_be": "later than now and than the time from which the job may start"}'::jsonb,
  'a time that has passed'
);
select is(
  t.refusal($$select trunkline.enqueue(
    p_task => 'mail', p_run_at => trunkline.clock() + interval '1 hour', p_expires_at => trunkline.clock() + interval '1 minute'
  )$$) ->> 'argument',
  'p_expires_at',
  'a time before run_at'
);
select is(
  t.refusal($$select trunkline.enqueue(
    p_task => 'mail', p_delay => interval '1 hour', p_expires_at => trunkline.clock() + interval '1 minute'
  )$$) ->> 'argument',
  'p_expires_at',
  'a time before the end of the delay'
);
select is(
  t.refusal($$select trunkline.enqueue(p_task => 'mail', p_expires_at => 'infinity')$$) ->> 'argument',
  'p_expires_at',
  'a time that never comes'
);
select is(
  t.refusal($$select * from trunkline.enqueue_many(p_jobs => jsonb_build_array(
    jsonb_build_object('task', 'mail'),
    jsonb_build_object('task', 'mail', 'expires_at', trunkline.clock() - interval '1 second')
  ))$$) - 'message' - 'must_be',
  '{"sqlstate": "TL028", "code": "invalid_argument", "argument": "p_expires_at", "index": 1}'::jsonb,
  'in a batch, with the index of the job'
);
select is((select count(*) from trunkline.list_jobs()), 0::bigint, 'nothing was enqueued');
select job_id as kept from trunkline.enqueue_many(p_jobs => jsonb_build_array(
  jsonb_build_object('task', 'mail', 'expires_at', trunkline.clock() + interval '1 minute')
)) \gset
select isnt((t.job(:'kept')).expires_at, null, 'a batch keeps a deadline that lies ahead');

select * from finish();
