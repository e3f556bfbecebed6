-- CP-18, CP-22, CP-26: a batch is enqueued in one statement and answered in its order, with the defaults of each task.
\ir ../helpers/tools.sql
select plan(9);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail', p_priority => 2, p_max_attempts => 9) \g /dev/null
select trunkline.register_task(p_task => 'page', p_queue => 'fast', p_audit => true) \g /dev/null

create temporary table answers as
select e.*, row_number() over () as place
from trunkline.enqueue_many($$[
  {"task": "page", "payload": {"n": 1}},
  {"task": "mail", "payload": {"n": 2}, "delay": "1 hour", "tenant": "acme", "correlation_id": "c", "tags": ["x", "y"]},
  {"task": "mail", "payload": {"n": 3}, "priority": 7, "max_attempts": 1, "queue": "express"},
  {"task": "mail", "payload": {"n": 4}, "run_at": "2001-01-01T00:00:00Z"},
  {"task": "mail", "payload": null}
]$$) as e;

select results_eq(
  'select created, state from answers order by place',
  $$values (true, 'ready'), (true, 'scheduled'), (true, 'ready'), (true, 'ready'), (true, 'ready')$$,
  'one answer for each'
);
select results_eq(
  $$select (t.job(job_id)).payload ->> 'n' from answers order by place$$,
  $$values ('1'), ('2'), ('3'), ('4'), (null)$$,
  'in the order of the request'
);
select results_eq(
  $$select j.queue, j.priority, j.max_attempts from answers as a join trunkline.jobs as j using (job_id) order by a.place$$,
  $$values ('fast', 0, 4), ('default', 2, 9), ('express', 7, 1), ('default', 2, 9), ('default', 2, 9)$$,
  'what is left out comes from the task'
);
select results_eq(
  $$select j.tenant, j.correlation_id, j.tags, j.run_at - j.created_at from answers as a join trunkline.jobs as j using (job_id) where a.place = 2$$,
  $$values ('acme', 'c', array['x', 'y'], interval '1 hour')$$,
  'what is given is kept'
);
select is((select (t.event(job_id)).kind from answers where place = 1), 'enqueued', 'an audited task has its event');
select is((select (t.event(job_id)).kind from answers where place = 3), null, 'another one has none');

select is((select count(*) from trunkline.enqueue_many('[]')), 0::bigint, 'an empty batch is no error');
select is(
  (select count(distinct job_id) from trunkline.enqueue_many((select jsonb_agg('{"task": "mail", "priority": -9}'::jsonb) from generate_series(1, 2000)))),
  2000::bigint,
  'thousands in one statement'
);
set session authorization trunkline_worker;
select results_eq(
  $$select payload ->> 'n' from trunkline.claim(p_worker => 'w1', p_queues => array['default'], p_limit => 2)$$,
  $$values ('4'), (null)$$,
  'jobs of a batch are claimed in its order'
);

select * from finish();
