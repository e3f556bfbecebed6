-- EX-14: jobs of a batch that carry keys are checked one by one, against each other too.
\ir ../helpers/tools.sql
select plan(8);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select job_id as held from trunkline.enqueue(p_task => 'mail', p_unique_key => 'b') \gset

create temporary table answers as
select e.*, row_number() over () as place
from trunkline.enqueue_many($$[
  {"task": "mail", "unique_key": "c", "payload": {"n": 1}},
  {"task": "mail", "unique_key": "b", "priority": 4},
  {"task": "mail", "payload": {"n": 3}},
  {"task": "mail", "unique_key": "a"},
  {"task": "mail", "unique_key": "c"},
  {"task": "mail", "idempotency_key": "i", "payload": {"n": 6}},
  {"task": "mail", "idempotency_key": "i", "payload": {"n": 6}, "priority": 3}
]$$) as e;

select results_eq(
  'select created from answers order by place',
  array[true, false, true, true, false, true, false],
  'each is answered in its place'
);
select is((select job_id from answers where place = 2), :'held'::uuid, 'a key held before returns its holder');
select is((t.job(:'held')).priority, 4, 'and raises its priority');
select is((select count(distinct job_id) from answers where place in (1, 5)), 1::bigint, 'a key twice in the batch makes one job');
select is((select count(distinct job_id) from answers where place in (6, 7)), 1::bigint, 'so does an idempotency key');
select is((select count(*) from trunkline.jobs), 5::bigint, 'five jobs wait');

select is(
  t.refusal($$select trunkline.enqueue_many('[
    {"task": "mail", "payload": {"n": 8}},
    {"task": "mail", "idempotency_key": "j", "payload": {"n": 9}},
    {"task": "mail", "idempotency_key": "j", "payload": {"n": 10}}
  ]')$$) - array['message', 'job'],
  '{"sqlstate": "TL027", "code": "idempotency_mismatch", "index": 2, "idempotency_key": "j", "task": "mail", "first_task": "mail", "differs": ["payload"]}',
  'two requests that differ cannot share an idempotency key in one batch'
);
select is((select count(*) from trunkline.jobs), 5::bigint, 'and the batch is refused as a whole');

select * from finish();
