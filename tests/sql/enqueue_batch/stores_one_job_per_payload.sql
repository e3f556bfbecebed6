-- One job for each payload, in their order, as the task's policy says; ids are counted within the batch.
\ir ../helpers/tools.sql
select plan(17);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail', p_queue => 'post', p_priority => 3, p_max_attempts => 7) \g /dev/null
select trunkline.register_task(p_task => 'audited', p_audit => true) \g /dev/null
select trunkline.register_task(p_task => 'plain') \g /dev/null

create temporary table made as
select m.job_id, m.place
from trunkline.enqueue_batch('mail', (select jsonb_agg(jsonb_build_object('n', n) order by n) from generate_series(1, 300) as n)) as b,
  unnest(b.job_ids) with ordinality as m (job_id, place);

select is((select count(distinct m.job_id) from made as m), 300::bigint, 'an id for each');
select is(
  (select array_agg(j.payload ->> 'n' order by m.place) from made as m, trunkline.job(p_job => m.job_id) as j),
  (select array_agg(n::text order by n) from generate_series(1, 300) as n),
  'in the order of the payloads'
);
select is(
  (select array_agg(m.place order by m.job_id) from made as m),
  (select array_agg(n::bigint order by n) from generate_series(1, 300) as n),
  'ids sort in that order'
);
select is(
  (select count(*) from made as m where m.job_id::text ~ '^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'),
  300::bigint,
  'each is a UUIDv7'
);
select is(
  (select jsonb_agg(distinct jsonb_build_array(j.state, j.queue, j.priority, j.max_attempts, j.tenant)) from trunkline.jobs as j),
  '[["ready", "post", 3, 7, null]]'::jsonb,
  'as the policy says'
);
select is((trunkline.enqueue_batch('mail', '[{}]')).state, 'ready', 'the answer has their state');
select ok((trunkline.enqueue_batch('mail', '[{}]')).run_at <= trunkline.clock(), 'and when they are due');
select is(coalesce(cardinality((trunkline.enqueue_batch('mail', '[]')).job_ids), 0), 0, 'no payloads, no jobs');

set session authorization trunkline_worker;
select is(
  (select array_agg((c.payload ->> 'n')::integer) from trunkline.claim(p_worker => 'w', p_queues => array['post'], p_limit => 300) as c),
  (select array_agg(n order by n) from generate_series(1, 300) as n),
  'claimed in that order'
);

-- What is not ordinary goes the way of enqueue_many.
set session authorization trunkline_producer;
create temporary table large as
select m.job_id, m.place
from trunkline.enqueue_batch('mail', jsonb_build_array('{"n": 1}'::jsonb, jsonb_build_object('text', repeat('x', 5000)), '{"n": 3}'::jsonb)) as b,
  unnest(b.job_ids) with ordinality as m (job_id, place);
select is(
  (select array_agg(length(j.payload::text) > 1000 order by l.place) from large as l, trunkline.job(p_job => l.job_id) as j),
  array[false, true, false],
  'a large payload is kept apart and read back'
);
set session authorization trunkline_operator;
create temporary table audited as select unnest((trunkline.enqueue_batch('audited', '[{}, {}]')).job_ids) as job_id;
select is(
  (select count(*) from audited as a join trunkline.events as e using (job_id) where e.kind = 'enqueued'),
  2::bigint,
  'an audited task has its events'
);
set session authorization trunkline_producer;
select is(
  t.refusal($$select trunkline.enqueue_batch('mail', '[{}, [1]]')$$) - 'message',
  '{"sqlstate": "TL002", "code": "payload_not_object", "index": 1, "task": "mail", "type": "array"}'::jsonb,
  'a payload that is no object, with its place'
);
select is(t.refusal($$select trunkline.enqueue_batch('fax', '[{}]')$$) ->> 'code', 'unknown_task', 'an unknown task');
select is(t.refusal($$select trunkline.enqueue_batch('mail', '{}')$$) ->> 'argument', 'p_payloads', 'no array');
select is(t.refusal($$select trunkline.enqueue_batch('mail', null)$$) ->> 'argument', 'p_payloads', 'null');

set session authorization trunkline_operator;
select trunkline.pause_queue(p_queue => 'post', p_refuse_enqueue => true) \g /dev/null
set session authorization trunkline_producer;
select is(t.refusal($$select trunkline.enqueue_batch('mail', '[{}]')$$) ->> 'code', 'queue_paused', 'a queue that refuses');

reset session authorization;
select set_config('trunkline.tenant', 'acme', false) \g /dev/null
create temporary table theirs as select unnest((trunkline.enqueue_batch('plain', '[{}, {}]')).job_ids) as job_id;
select is(
  (select array_agg(distinct j.tenant) from theirs as m, trunkline.job(p_job => m.job_id) as j),
  array['acme'],
  'a session of one tenant makes jobs of that tenant'
);

select * from finish();
