-- CP-19, RC-06: an unknown task is refused with the list of known ones, unless a setting lets it be registered with defaults.
\ir ../helpers/tools.sql
select plan(8);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select trunkline.register_task(p_task => 'fax') \g /dev/null
select is(
  t.refusal($$select trunkline.enqueue(p_task => 'mial')$$),
  '{"sqlstate": "TL001", "message": "unknown task", "code": "unknown_task", "task": "mial", "known": ["fax", "mail"]}'::jsonb,
  'the refusal lists the known tasks'
);
select is_empty($$select * from trunkline.jobs$$, 'nothing was enqueued');
select is_empty($$select * from trunkline.tasks where task = 'mial'$$, 'or registered');
select is(t.refusal($$select trunkline.enqueue(p_task => null)$$) ->> 'argument', 'p_task', 'no task is a bad argument');

set session authorization trunkline_operator;
select trunkline.set_setting(p_name => 'allow_unknown_tasks', p_value => 'true') \g /dev/null
select is((trunkline.enqueue(p_task => 'mial')).created, true, 'with the setting it is enqueued');
select is((select count(*) from trunkline.enqueue_many('[{"task": "pigeon"}]')), 1::bigint, 'in a batch too');
select results_eq(
  $$select task, lease, hard_limit, max_attempts::integer from trunkline.tasks where task in ('mial', 'pigeon') order by task$$,
  $$values ('mial', interval '300 seconds', interval '1200 seconds', 4), ('pigeon', interval '300 seconds', interval '1200 seconds', 4)$$,
  'and shows up among the tasks with the default lease: none is exempt'
);
select is((select count(*) from trunkline.jobs), 2::bigint, 'both jobs wait');

select * from finish();
