-- CP-62, RC-05: one call registers all tasks of a worker; a restart that brings no news writes and locks nothing.
\ir ../helpers/tools.sql
\ir ../../support/internals/internals.sql
select plan(14);

\set tasks '[{"task": "mail", "queue": "post", "lease": "60 seconds", "hard_limit": 90, "max_attempts": 7, "backoff": {"base": 1.5, "factor": 1.7, "cap": 9, "jitter": 0.1}, "audit": true, "priority": 3, "unique_until": "claim", "crash_limit": 2, "reclaim_on_worker_death": false, "lost_backoff": true, "dead_when_deferred": true, "profile": "letters"}, {"task": "fax"}, {"task": "bell", "queue": null}]'

set session authorization trunkline_worker;
select is(trunkline.register_tasks(p_tasks => :'tasks'), 3, 'three new tasks');
select results_eq(
  $$select queue, profile, lease, hard_limit, max_attempts::integer, priority::integer, backoff_base, backoff_factor, backoff_cap, backoff_jitter,
      lost_backoff, reclaim_on_worker_death, crash_limit::integer, unique_until, dead_when_deferred, audit from trunkline.tasks where task = 'mail'$$,
  $$values ('post', 'letters', interval '60 seconds', interval '90 seconds', 7, 3, interval '1.5 seconds', 1.7::double precision, interval '9 seconds',
      0.1::double precision, true, false, 2, 'claim', true, true)$$,
  'every field is stored, a number as seconds'
);
select results_eq(
  $$select queue, max_attempts::integer, backoff_base from trunkline.tasks where task in ('fax', 'bell')$$,
  $$values ('default', 4, interval '10 seconds'), ('default', 4, interval '10 seconds')$$,
  'what is left out or null gets its default'
);
select t.task_versions() as versions \gset
select trunkline_test.move_time('1 hour') \g /dev/null
select is(trunkline.register_tasks(p_tasks => :'tasks'), 0, 'the next start changes nothing');
select is(t.task_versions(), :'versions'::text[], 'and neither writes nor locks a row');
select trunkline.register_task(p_task => 'mail', p_queue => 'post', p_lease => '1 minute', p_backoff => '{"factor": 1.7}') \g /dev/null
select is(t.task_versions(), :'versions'::text[], 'register_task likewise');
select is(
  trunkline.register_tasks(p_tasks => '[{"task": "mail", "lease": 61}, {"task": "fax", "queue": "default"}, {"task": "bell", "backoff": {"jitter": 0.3}}]'),
  2,
  'who brings news is told how many'
);
select results_eq(
  $$select task, lease, max_attempts::integer, updated_at > registered_at from trunkline.tasks where task in ('mail', 'fax') order by task$$,
  $$values ('fax', interval '300 seconds', 4, false), ('mail', interval '61 seconds', 7, true)$$,
  'and only they are changed, the rest of them kept'
);
select is(trunkline.register_tasks(p_tasks => '[]'), 0, 'no tasks are no trouble');

select is(
  (select r - 'message' - 'reason' from t.refusal($$select trunkline.register_tasks(p_tasks => '[{"task": "new"}, {"task": "fax", "lease": "soon"}]')$$) as r) - 'must_be',
  '{"sqlstate": "TL028", "code": "invalid_argument", "argument": "p_tasks", "index": 1, "task": "fax"}'::jsonb,
  'a field of the wrong type is named with its task'
);
select is(
  (select r -> 'unknown_fields' || (r -> 'index') from t.refusal($$select trunkline.register_tasks(p_tasks => '[{"task": "new"}, {"task": "fax", "leese": 1, "que": 2}]')$$) as r),
  '["que", "leese", 1]'::jsonb,
  'so are misspelt fields'
);
select is(
  (select (r ->> 'code') || ' ' || (r ->> 'task') || ' ' || (r ->> 'argument') from t.refusal($$select trunkline.register_tasks(p_tasks => '[{"task": "a"}, {"task": "new", "lease": 0}]')$$) as r),
  'invalid_policy new p_lease',
  'and a policy that could not work'
);
select is(
  t.refusal($$select trunkline.register_tasks(p_tasks => '[{"task": "fax", "priority": 1}, {"task": "mail"}, {"task": "fax", "priority": 2}]')$$) ->> 'must_be',
  'each task once',
  'two policies of one task are refused'
);
select is(
  (select array_agg(task || ' ' || priority || ' ' || lease order by task) from trunkline.tasks),
  array['bell 0 00:05:00', 'fax 0 00:05:00', 'mail 3 00:01:01'],
  'each time all or nothing'
);

select * from finish();
