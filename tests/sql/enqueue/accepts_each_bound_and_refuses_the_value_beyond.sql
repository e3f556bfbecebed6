-- Each argument of a request is accepted up to its bound, alone and in a batch, and refused beyond it.
\ir ../helpers/tools.sql
\ir ../helpers/cases.sql
select plan(6);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select trunkline.register_task(p_task => 'other') \g /dev/null
create temporary table fields (field text, value text, expected text);
insert into fields values
  ('priority', '49', 'accepted'), ('priority', '50', 'priority_out_of_range'),
  ('priority', '-50', 'accepted'), ('priority', '-51', 'priority_out_of_range'),
  ('delay', $$interval '0'$$, 'accepted'), ('delay', $$interval '-1 microsecond'$$, 'negative_delay'),
  ('delay', $$interval '3650 days'$$, 'accepted'), ('delay', $$interval '3650 days 1 microsecond'$$, 'p_delay'),
  ('run_at', $$timestamptz '1970-01-01 00:00:00+00'$$, 'accepted'),
  ('run_at', $$timestamptz '1969-12-31 23:59:59+00'$$, 'p_run_at'),
  ('run_at', $$timestamptz '9000-01-01 00:00:00+00'$$, 'accepted'),
  ('run_at', $$timestamptz '9000-01-01 00:00:01+00'$$, 'p_run_at'),
  ('queue', $$repeat('q', 200)$$, 'accepted'), ('queue', $$repeat('q', 201)$$, 'p_queue'), ('queue', $$''::text$$, 'p_queue'),
  ('tenant', $$repeat('t', 400)$$, 'accepted'), ('tenant', $$repeat('t', 401)$$, 'p_tenant'), ('tenant', $$''::text$$, 'p_tenant'),
  ('unique_key', $$repeat('k', 1000)$$, 'accepted'), ('unique_key', $$repeat('k', 1001)$$, 'p_unique_key'),
  ('unique_key', $$''::text$$, 'p_unique_key'),
  ('idempotency_key', $$repeat('k', 1000)$$, 'accepted'), ('idempotency_key', $$repeat('k', 1001)$$, 'p_idempotency_key'),
  ('idempotency_key', $$''::text$$, 'p_idempotency_key'),
  ('correlation_id', $$repeat('c', 200)$$, 'accepted'), ('correlation_id', $$repeat('c', 201)$$, 'p_correlation_id'),
  ('max_attempts', '1', 'accepted'), ('max_attempts', '0', 'p_max_attempts'),
  ('max_attempts', '1000', 'accepted'), ('max_attempts', '1001', 'p_max_attempts'),
  ('tags', $$array_fill('x'::text, array[20])$$, 'accepted'), ('tags', $$array_fill('x'::text, array[21])$$, 'p_tags'),
  ('tags', $$array[repeat('x', 200)]$$, 'accepted'), ('tags', $$array['x', repeat('x', 201)]$$, 'p_tags'),
  ('tags', $$array['x', null]$$, 'p_tags'), ('tags', $$'{}'::text[]$$, 'accepted'),
  ('expires_at', $$timestamptz '9000-01-01 00:00:00+00'$$, 'accepted'),
  ('expires_at', $$timestamptz '9000-01-01 00:00:01+00'$$, 'p_expires_at'),
  ('expires_at', $$trunkline.clock() - interval '1 second'$$, 'p_expires_at'),
  ('cost', $$'{"tokens": 1}'::jsonb$$, 'invalid_cost');
insert into t.cases (call, expected)
select format('enqueue(p_task => ''mail'', p_%s => %s)', f.field, f.value), f.expected from fields as f
union all
-- A batch of one way, and of the other where a key or an accepted job makes every job go alone.
select format(
  'enqueue_many(jsonb_build_array(''{"task": "other"}''::jsonb, jsonb_build_object(''task'', ''mail'', %L, %s)%s))', f.field, f.value, o.other
), f.expected
from fields as f
cross join (values (''), (', ''{"task": "other", "unique_key": "k"}''::jsonb')) as o (other)
-- A number has the same limits, but the JSON of an interval or an array of one dimension is read back as it is.
where f.expected <> 'p_expires_at' or f.value not like '%clock%';
insert into t.cases (call, expected) values
  ($$enqueue(p_task => 'mail', p_delay => '1 minute', p_expires_at => trunkline.clock() + interval '1 hour')$$, 'accepted'),
  ($$enqueue(p_task => 'mail', p_delay => '2 hours', p_expires_at => trunkline.clock() + interval '1 hour')$$, 'p_expires_at'),
  ($$enqueue(p_task => 'mail', p_run_at => trunkline.clock() + interval '2 hours', p_expires_at => trunkline.clock() + interval '1 hour')$$, 'p_expires_at'),
  ($$enqueue(p_task => 'mail', p_payload => '[]')$$, 'payload_not_object'),
  ($$enqueue_batch('mail', '[{}, []]')$$, 'payload_not_object'),
  ($$enqueue_batch('mail', null)$$, 'p_payloads'),
  ($$enqueue_batch('mail', '{}')$$, 'p_payloads'),
  ($$enqueue_batch('mail', (select jsonb_agg('{}'::jsonb) from generate_series(1, 100000)))$$, 'accepted'),
  ($$enqueue_batch('mail', (select jsonb_agg('{}'::jsonb) from generate_series(1, 100001)))$$, 'p_payloads'),
  ($$enqueue_many((select jsonb_agg('{"task": "mail"}'::jsonb) from generate_series(1, 100000)))$$, 'accepted'),
  ($$enqueue_many((select jsonb_agg('{"task": "mail"}'::jsonb) from generate_series(1, 100001)))$$, 'p_jobs');
select is_empty('select * from t.surprises()', 'every value is accepted or refused as it should be');
select is_empty('select * from trunkline.jobs', 'and nothing is stored by a refusal');

-- The largest payload that is kept: the setting is the size in bytes as it is stored.
create function pg_temp.sized(p_bytes integer) returns jsonb language sql as $$
  select jsonb_build_object('x', repeat('y', p_bytes - pg_column_size(jsonb_build_object('x', '')) ))
$$;
select is(t.outcome('enqueue(''mail'', pg_temp.sized(262144))'), 'accepted', 'a payload of just that size');
select is(
  t.refusal($$select trunkline.enqueue('mail', pg_temp.sized(262145))$$) - 'message',
  '{"sqlstate": "TL003", "code": "payload_too_large", "task": "mail", "bytes": 262145, "max_payload_bytes": 262144}'::jsonb,
  'a byte more'
);

-- All of the detail, and which job of a batch it is about.
select is(
  t.refusal($$select trunkline.enqueue_many('[{"task": "mail"}, {"task": "mail"}, {"task": "mail", "priority": 50}]')$$) - 'message',
  '{"sqlstate": "TL005", "code": "priority_out_of_range", "index": 2, "priority": 50, "minimum": -50, "maximum": 49}'::jsonb,
  'a batch names the job'
);
select is(
  t.refusal($$select trunkline.enqueue_many('[{"task": "mail"}, {"task": "mail", "colour": 1}, {"task": "mail", "shape": 2}]')$$) - 'message' - 'must_be',
  '{"sqlstate": "TL028", "code": "invalid_argument", "argument": "p_jobs", "unknown_fields": {"1": "colour", "2": "shape"}}'::jsonb,
  'and the fields that no request has'
);

select * from finish();
