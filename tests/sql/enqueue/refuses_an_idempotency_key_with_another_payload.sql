-- EX-14: an idempotency key stands for one task and payload; a request that differs is refused, not answered with the first job.
\ir ../helpers/tools.sql
select plan(25);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select trunkline.register_task(p_task => 'fax') \g /dev/null
select job_id as job from trunkline.enqueue(
  p_task => 'mail', p_idempotency_key => 'k', p_payload => '{"to": "ann", "copies": 1, "lines": [{"price": 2.50}]}'
) \gset

select is(
  t.refusal($$select trunkline.enqueue(p_task => 'mail', p_idempotency_key => 'k', p_payload => '{"to": "bob secret", "copies": 1}')$$) - 'message',
  jsonb_build_object('sqlstate', 'TL027', 'code', 'idempotency_mismatch', 'idempotency_key', 'k', 'task', 'mail', 'first_task', 'mail', 'job', :'job', 'differs', jsonb_build_array('payload')),
  'another payload is refused, and not repeated in the refusal'
);
select is(
  t.refusal($$select trunkline.enqueue(p_task => 'fax', p_idempotency_key => 'k')$$) -> 'differs', '["task", "payload"]',
  'the detail lists all that differs'
);
select is(
  t.refusal($$select trunkline.enqueue(p_task => 'fax', p_idempotency_key => 'k', p_payload => '{"to": "ann", "copies": 1, "lines": [{"price": 2.5}]}')$$) -> 'differs', '["task"]',
  'and nothing else'
);
select is((select count(*) from trunkline.jobs), 1::bigint, 'a refused request makes no job');

select is(
  (trunkline.enqueue(
    p_task => 'mail', p_idempotency_key => 'k',
    p_payload => '  {"lines":[{"price":25e-1}], "copies": 1.00,  "to": "\u0061nn"}'
  )).job_id,
  :'job'::uuid, 'order, spaces and the spelling of numbers and text do not matter'
);
select is(
  (trunkline.enqueue(
    p_task => 'mail', p_idempotency_key => 'k', p_priority => 9, p_delay => '1 hour', p_queue => 'other', p_tags => array['x'],
    p_max_attempts => 9, p_payload => '{"to": "ann", "copies": 1, "lines": [{"price": 2.5}]}'
  )).job_id,
  :'job'::uuid, 'priority, delay, queue, tags and attempts are not compared'
);

-- Each pair is one request as far as jsonb is concerned, or two.
create temporary table pairs (place integer, first jsonb, again jsonb);
insert into pairs values
  (1, '{"a": 0}', '{"a": -0.000}'),
  (2, '{"a": [100, 10.10, 0.5]}', '{"a": [1e2, 10.1, 0.50]}'),
  (3, '{"a": 10}', '{"a": 1}'),
  (4, '{"a": 1.05}', '{"a": 1.5}'),
  (5, '{"a": 1}', '{"a": "1"}'),
  (6, '{"a": "1.0"}', '{"a": "1"}'),
  (7, '{"a": "x 1.0, y"}', '{"a": "x 1, y"}'),
  (8, '{"a": "2.50]"}', '{"a": "2.5]"}'),
  (9, '{"a": [[1], 2]}', '{"a": [[1, 2]]}'),
  (10, '{"a": null}', '{}'),
  (11, '{"a": true}', '{"a": false}'),
  (12, '{"a": [1, 2]}', '{"a": [2, 1]}'),
  (13, jsonb_build_object('a', array_fill(1, array[64])), jsonb_build_object('a', array_fill(10, array[64]))),
  (14, jsonb_build_object('a', array_fill(0, array[64])), jsonb_build_object('a', array_fill(1, array[64]))),
  (15, jsonb_build_object('a', repeat('x', 200000)), jsonb_build_object('a', repeat('x', 200000) || 'y'));
select trunkline.enqueue(p_task => 'mail', p_idempotency_key => 'pair ' || p.place, p_payload => p.first) from pairs as p order by p.place \g /dev/null
select is(
  t.refusal(format(
    'select trunkline.enqueue(p_task => %L, p_idempotency_key => %L, p_payload => %L)', 'mail', 'pair ' || p.place, p.again
  )) -> 'differs',
  case when p.first <> p.again then '["payload"]'::jsonb end,
  format('pair %s %s', p.place, case when p.first <> p.again then 'differs' else 'is one request' end)
)
from pairs as p
order by p.place;
select is(
  (select count(*) from pairs as p where not (trunkline.enqueue(p_task => 'mail', p_idempotency_key => 'pair ' || p.place, p_payload => p.first)).created),
  15::bigint, 'the first request is answered each time'
);

select trunkline_test.move_time('8 days') \g /dev/null
select is((trunkline.enqueue(p_task => 'mail', p_idempotency_key => 'k', p_payload => '{"to": "eve"}')).created, true, 'an expired key takes another payload');
select is((trunkline.enqueue(p_task => 'mail', p_idempotency_key => 'k', p_payload => '{"to": "eve"}')).created, false, 'answers it');
select is(
  t.refusal($$select trunkline.enqueue(p_task => 'mail', p_idempotency_key => 'k', p_payload => '{"to": "ann"}')$$) ->> 'code', 'idempotency_mismatch',
  'and stands for that one from then on'
);

select * from finish();
