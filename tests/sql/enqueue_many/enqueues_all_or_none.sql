-- CP-19, CP-20: one bad job refuses the whole batch, naming its place, and nothing is stored.
\ir ../helpers/tools.sql
select plan(13);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail') \g /dev/null

select is(
  t.refusal($$select trunkline.enqueue_many('[{"task": "mail"}, {"task": "mail", "payload": [1]}]')$$) - 'message',
  '{"sqlstate": "TL002", "code": "payload_not_object", "index": 1, "task": "mail", "type": "array"}'::jsonb,
  'a payload that is no object'
);
select is(t.refusal($$select trunkline.enqueue_many('[{"task": "mail"}, {"task": "fax"}]')$$) ->> 'code', 'unknown_task', 'an unknown task');
select is(t.refusal($$select trunkline.enqueue_many('[{"task": "mail"}, {"payload": {}}]')$$) ->> 'argument', 'p_task', 'no task');
select is(t.refusal($$select trunkline.enqueue_many('[{"task": "mail"}, {"task": "mail", "delay": "-1 second"}]')$$) ->> 'code', 'negative_delay', 'a delay below zero');
select is(t.refusal($$select trunkline.enqueue_many('[{"task": "mail"}, {"task": "mail", "priority": 50}]')$$) ->> 'index', '1', 'a priority out of range');
select is(t.refusal($$select trunkline.enqueue_many('[{"task": "mail"}, {"task": "mail", "priority": "high"}]')$$) ->> 'code', 'invalid_argument', 'a priority that is no number');
select is(t.refusal($$select trunkline.enqueue_many('[{"task": "mail"}, 1]')$$) ->> 'code', 'invalid_argument', 'something that is no object');
select is(
  t.refusal($$select trunkline.enqueue_many('[{"task": "mail"}, {"task": "mail", "priorty": 3}]')$$) -> 'unknown_fields',
  '{"1": "priorty"}'::jsonb,
  'a misspelt field'
);
select is(t.refusal($$select trunkline.enqueue_many('{"task": "mail"}')$$) ->> 'argument', 'p_jobs', 'no array');
select is(t.refusal($$select trunkline.enqueue_many(null)$$) ->> 'argument', 'p_jobs', 'null');
select is(
  t.refusal($$select trunkline.enqueue_many('[{"task": "mail", "unique_key": "k"}, {"task": "mail", "max_attempts": 0}]')$$) ->> 'index',
  '1',
  'a bad job beside one with a key'
);
select is_empty('select * from trunkline.jobs', 'no job was stored by any of them');
select is((trunkline.enqueue(p_task => 'mail', p_unique_key => 'k')).created, true, 'and no key is held');

select * from finish();
