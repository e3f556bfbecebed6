-- Recorded steps: each is stored once, read by later attempts, and a stale attempt stores nothing.
\ir ../helpers/tools.sql
select plan(15);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select t.started('mail') as one \gset
select t.started('mail') as two \gset

select is(
  trunkline.record_steps('w1', array[:'one', :'one', :'two']::uuid[], array[1, 1, 1], array[1, 2, 1], array['ocr', 'ocr', 'send'],
    array['#1', '#2', '#1'], array[7, null, 9], array['"a"', '{"b": 2}', null]::jsonb[]),
  array['ok', 'ok', 'ok'], 'three steps of two attempts are recorded by one call'
);
select results_eq(
  format('select kind, name, key, place, arguments_hash, result from trunkline.recorded_steps(''w1'', %L, 1)', :'one'),
  $$values ('step', 'ocr', '#1', 1, 7::bigint, '"a"'::jsonb), ('step', 'ocr', '#2', 2, null, '{"b": 2}')$$,
  'the worker that holds the attempt reads them'
);
select is(
  trunkline.record_steps('w1', array[:'one']::uuid[], array[1], array[1], array['ocr'], array['#1'], array[7], array['"other"']::jsonb[]),
  array['ok'], 'a repeated call is accepted'
);
select is((select result from trunkline.recorded_steps('w1', :'one', 1) where key = '#1'), '"a"', 'and changes nothing');
select is(
  trunkline.record_steps('w2', array[:'one']::uuid[], array[1], array[3], array['x'], array['#1'], array[null::bigint], array['1']::jsonb[]),
  array['lost'], 'another worker records nothing'
);
select is(
  trunkline.record_steps('w1', array[:'one', :'two']::uuid[], array[2, 1], array[3, 2], array['x', 'y'], array['#1', '#1'],
    array[null, null]::bigint[], array['1', '2']::jsonb[]),
  array['lost', 'ok'], 'another attempt records nothing, the rest of the batch does'
);
select is(
  (t.refusal(format('select * from trunkline.recorded_steps(%L, %L, 1)', 'w2', :'one'))) ->> 'code', 'stale_attempt',
  'a worker reads only steps of what it holds'
);
select is((select count(*)::integer from trunkline.recorded_steps('w1', :'one', 1)), 2, 'no other step was stored');

set session authorization trunkline_producer;
select trunkline.cancel(:'two') \g /dev/null
set session authorization trunkline_worker;
select is(
  trunkline.record_steps('w1', array[:'two']::uuid[], array[1], array[3], array['z'], array['#1'], array[null::bigint], array['1']::jsonb[]),
  array['cancel'], 'after a cancel request the verdict is cancel'
);
select is(
  (select verdict from trunkline.complete('w1', array[:'two']::uuid[], array[1])), 'cancel', 'which counts as received'
);

select is(
  (t.refusal(format($$select trunkline.record_steps('w1', array[%L]::uuid[], array[1], array[3], array['big'], array['#1'], array[null::bigint], array[to_jsonb((select string_agg(md5(n::text), '') from generate_series(1, 20000) as n))])$$, :'one')))
    - array['job', 'bytes', 'message', 'sqlstate'],
  '{"code": "step_too_large", "step": "big", "max_bytes": 262144}'::jsonb, 'a large result is refused'
);
select is(
  (t.refusal(format($$select trunkline.record_steps('w1', array[%L]::uuid[], array[1], array[10001], array['many'], array['#1'], array[null::bigint], array['1']::jsonb[])$$, :'one'))) ->> 'code',
  'too_many_steps', 'and so is step 10,001'
);

select trunkline.fail('w1', array[:'one']::uuid[], array[1], array['{"message": "no"}']::jsonb[], array[true], array[interval '0']) \g /dev/null
select is((select job_id::text from trunkline.claim('w9', p_tasks => array['mail']) as c), :'one', 'the next attempt starts');
select is((select count(*)::integer from trunkline.recorded_steps('w9', :'one', 2)), 2, 'and reads what the first one recorded');
select is(
  trunkline.record_steps('w1', array[:'one']::uuid[], array[1], array[3], array['late'], array['#1'], array[null::bigint], array['1']::jsonb[]),
  array['lost'], 'the stale attempt records nothing'
);
select * from finish();
