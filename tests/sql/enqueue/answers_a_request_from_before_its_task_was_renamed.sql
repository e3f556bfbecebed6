-- An idempotency key of a task counts for its aliases as well: a request may be repeated by code that has renamed the task.
\ir ../helpers/tools.sql
select plan(7);

set session authorization trunkline_producer;
select trunkline.register_tasks(p_tasks => '[{"task": "send"}, {"task": "post"}, {"task": "fax"}]') \g /dev/null
select job_id as job from trunkline.enqueue(p_task => 'send', p_idempotency_key => 'k', p_payload => '{"to": "ann"}') \gset
select is(
  t.refusal($$select trunkline.enqueue(p_task => 'mail', p_idempotency_key => 'k', p_payload => '{"to": "ann"}')$$) ->> 'code',
  'unknown_task', 'before the deploy there is no such task'
);

select trunkline.register_tasks(
  p_tasks => '[{"task": "mail"}, {"task": "send", "alias_of": "mail"}, {"task": "post", "alias_of": "mail"}]'
) \g /dev/null
select is(
  (trunkline.enqueue(p_task => 'mail', p_idempotency_key => 'k', p_payload => '{"to": "ann"}')).job_id, :'job'::uuid,
  'the request is answered under the new name'
);
select is(
  (trunkline.enqueue(p_task => 'post', p_idempotency_key => 'k', p_payload => '{"to": "ann"}')).job_id, :'job'::uuid,
  'and under another old name'
);
select is(
  t.refusal($$select trunkline.enqueue(p_task => 'mail', p_idempotency_key => 'k', p_payload => '{"to": "bob"}')$$) -> 'differs', '["payload"]',
  'another payload is refused as before'
);
select is(
  t.refusal($$select trunkline.enqueue(p_task => 'fax', p_idempotency_key => 'k', p_payload => '{"to": "ann"}')$$) -> 'differs', '["task"]',
  'so is another task'
);
select trunkline.register_tasks(p_tasks => '[{"task": "send"}]') \g /dev/null
select is(
  t.refusal($$select trunkline.enqueue(p_task => 'mail', p_idempotency_key => 'k', p_payload => '{"to": "ann"}')$$) -> 'differs', '["task"]',
  'a name that is no alias any more is another task'
);
select is(
  t.refusal($$select trunkline.register_tasks(p_tasks => '[{"task": "send", "alias_of": "send"}]')$$) ->> 'argument', 'alias_of',
  'no task is its own alias'
);

select * from finish();
