-- CP-20, CP-22: every bad argument has its own refusal, and nothing is stored.
\ir ../helpers/tools.sql
select plan(19);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail') \g /dev/null

select is(t.refusal($$select trunkline.enqueue(p_task => 'mail', p_payload => null)$$) - 'message',
  '{"sqlstate": "TL002", "code": "payload_not_object", "task": "mail", "type": "missing"}'::jsonb, 'no payload');
select is(t.refusal($$select trunkline.enqueue(p_task => 'mail', p_payload => '[1]')$$) ->> 'type', 'array', 'an array');
select is(t.refusal($$select trunkline.enqueue(p_task => 'mail', p_payload => '"a"')$$) ->> 'type', 'string', 'a text');
select is(t.refusal($$select trunkline.enqueue(p_task => 'mail', p_payload => '1')$$) ->> 'type', 'number', 'a number');
select is(t.refusal($$select trunkline.enqueue(p_task => 'mail', p_payload => 'null')$$) ->> 'type', 'null', 'a JSON null');
select is(
  t.refusal($$select trunkline.enqueue(p_task => 'mail', p_payload => jsonb_build_object('a', repeat('x', 262144)))$$) ->> 'code',
  'payload_too_large', 'more than 256 KiB'
);
select is(
  t.refusal($$select trunkline.enqueue(p_task => 'mail', p_payload => jsonb_build_object('a', repeat('x', 262000)))$$),
  null, 'but not less'
);
select is(t.refusal($$select trunkline.enqueue(p_task => 'mail', p_delay => '-1 second')$$) ->> 'sqlstate', 'TL004', 'a delay below zero');
select is(t.refusal($$select trunkline.enqueue(p_task => 'mail', p_priority => 50)$$) ->> 'sqlstate', 'TL005', 'a priority too high');
select is(t.refusal($$select trunkline.enqueue(p_task => 'mail', p_priority => -51)$$) ->> 'sqlstate', 'TL005', 'a priority too low');
select is(t.refusal($$select trunkline.enqueue(p_task => 'mail', p_delay => '1 second', p_run_at => now())$$) ->> 'argument', 'p_delay', 'two due times');
select is(t.refusal($$select trunkline.enqueue(p_task => 'mail', p_run_at => 'infinity')$$) ->> 'argument', 'p_run_at', 'a due time that never comes');
select is(t.refusal($$select trunkline.enqueue(p_task => 'mail', p_queue => '')$$) ->> 'argument', 'p_queue', 'an empty queue');
select is(t.refusal($$select trunkline.enqueue(p_task => 'mail', p_tenant => '')$$) ->> 'argument', 'p_tenant', 'an empty tenant');
select is(t.refusal($$select trunkline.enqueue(p_task => 'mail', p_unique_key => repeat('x', 1001))$$) ->> 'argument', 'p_unique_key', 'an endless unique key');
select is(t.refusal($$select trunkline.enqueue(p_task => 'mail', p_idempotency_key => '')$$) ->> 'argument', 'p_idempotency_key', 'an empty idempotency key');
select is(t.refusal($$select trunkline.enqueue(p_task => 'mail', p_max_attempts => 1001)$$) ->> 'argument', 'p_max_attempts', 'too many attempts');
select is(t.refusal($$select trunkline.enqueue(p_task => 'mail', p_tags => array['a', null])$$) ->> 'argument', 'p_tags', 'a tag that is null');
select is((select count(*) from trunkline.jobs), 1::bigint, 'only the good one was stored');

select * from finish();
