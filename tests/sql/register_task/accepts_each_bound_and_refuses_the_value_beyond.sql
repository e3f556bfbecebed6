-- Each argument of a policy is accepted up to its bound, and refused with its name beyond it.
\ir ../helpers/tools.sql
\ir ../helpers/cases.sql
select plan(4);

set session authorization trunkline_producer;
insert into t.cases (call, expected)
select format('register_task(p_task => %s)', v.arguments), v.expected
from (values
  ($$repeat('x', 200)$$, 'accepted'),
  ($$repeat('x', 201)$$, 'p_task'),
  ($$''$$, 'p_task'),
  ($$'mail', p_queue => repeat('q', 200)$$, 'accepted'),
  ($$'mail', p_queue => repeat('q', 201)$$, 'p_queue'),
  ($$'mail', p_profile => repeat('p', 200)$$, 'accepted'),
  ($$'mail', p_profile => repeat('p', 201)$$, 'p_profile'),
  ($$'mail', p_lease => '1 second'$$, 'accepted'),
  ($$'mail', p_lease => '0.999 seconds'$$, 'p_lease'),
  ($$'mail', p_lease => '365 days'$$, 'accepted'),
  ($$'mail', p_lease => '365 days 1 second'$$, 'p_lease'),
  ($$'mail', p_hard_limit => '1 microsecond'$$, 'accepted'),
  ($$'mail', p_hard_limit => '0'$$, 'p_hard_limit'),
  ($$'mail', p_hard_limit => '3650 days'$$, 'accepted'),
  ($$'mail', p_hard_limit => '3650 days 1 second'$$, 'p_hard_limit'),
  ($$'mail', p_max_attempts => 1$$, 'accepted'),
  ($$'mail', p_max_attempts => 0$$, 'p_max_attempts'),
  ($$'mail', p_max_attempts => 1000$$, 'accepted'),
  ($$'mail', p_max_attempts => 1001$$, 'p_max_attempts'),
  ($$'mail', p_crash_limit => 1$$, 'accepted'),
  ($$'mail', p_crash_limit => 0$$, 'p_crash_limit'),
  ($$'mail', p_crash_limit => 1000$$, 'accepted'),
  ($$'mail', p_crash_limit => 1001$$, 'p_crash_limit'),
  ($$'mail', p_priority => 49$$, 'accepted'),
  ($$'mail', p_priority => 50$$, 'priority_out_of_range'),
  ($$'mail', p_priority => -50$$, 'accepted'),
  ($$'mail', p_priority => -51$$, 'priority_out_of_range'),
  ($$'mail', p_unique_until => 'claim'$$, 'accepted'),
  ($$'mail', p_unique_until => 'end'$$, 'accepted'),
  ($$'mail', p_unique_until => 'start'$$, 'p_unique_until'),
  ($$'mail', p_limits => '{}'$$, 'accepted'),
  ($$'mail', p_limits => '{a, b, c, d, e}'$$, 'accepted'),
  ($$'mail', p_limits => '{a, b, c, d, e, f}'$$, 'p_limits'),
  ($$'mail', p_limits => '{{a, b}, {c, d}}'$$, 'p_limits'),
  ($$'mail', p_limits => '{a, null}'$$, 'p_limits'),
  ($$'mail', p_limits => '{a, b, a}'$$, 'p_limits'),
  ($$'mail', p_limits => array['a', '']$$, 'p_limits'),
  ($$'mail', p_limits => '{a}', p_cost => '{"requests": 0, "tokens": 1000000000000, "units": 1}'$$, 'accepted'),
  ($$'mail', p_limits => '{a}', p_cost => '{"tokens": 1000000000001}'$$, 'p_cost'),
  ($$'mail', p_limits => '{a}', p_cost => '{"units": -1}'$$, 'p_cost'),
  ($$'mail', p_limits => '{a}', p_cost => '{"pages": 1}'$$, 'p_cost'),
  ($$'mail', p_limits => '{a}', p_cost => '[1]'$$, 'p_cost'),
  ($$'mail', p_backoff => '{}'$$, 'accepted'),
  ($$'mail', p_backoff => '[]'$$, 'p_backoff'),
  ($$'mail', p_backoff => jsonb_build_object('base', 1, repeat('x', 10000), 1)$$, 'p_backoff'),
  ($$'mail', p_backoff => '{"base": 0, "factor": 1, "cap": 315360000, "jitter": 0}'$$, 'accepted'),
  ($$'mail', p_backoff => '{"base": 0.000001, "factor": 100, "jitter": 1}'$$, 'accepted'),
  ($$'mail', p_backoff => '{"base": 0.0000009}'$$, 'p_backoff'),
  ($$'mail', p_backoff => '{"base": 315360001}'$$, 'p_backoff'),
  ($$'mail', p_backoff => '{"cap": 315360001}'$$, 'p_backoff'),
  ($$'mail', p_backoff => '{"factor": 0.99}'$$, 'p_backoff'),
  ($$'mail', p_backoff => '{"factor": 100.1}'$$, 'p_backoff'),
  ($$'mail', p_backoff => '{"jitter": 1.01}'$$, 'p_backoff'),
  ($$'mail', p_backoff => '{"jitter": -0.1}'$$, 'p_backoff'),
  ($$'mail', p_backoff => '{"base": "1"}'$$, 'p_backoff'),
  ($$'mail', p_backoff => '{"base": 1, "cup": 2}'$$, 'p_backoff')
) as v (arguments, expected);
insert into t.cases (call, expected)
select format('register_tasks(%s)', v.tasks), v.expected
from (values
  ($$(select jsonb_agg(jsonb_build_object('task', 't' || n)) from generate_series(1, 3) as n)$$, 'accepted'),
  ($$(select jsonb_agg('{}'::jsonb) from generate_series(1, 10001) as n)$$, 'p_tasks'),
  ($$jsonb_build_array(jsonb_build_object('task', repeat('x', 16777217)))$$, 'p_tasks'),
  ($$'[{"task": "mail", "alias_of": "post"}]'$$, 'accepted'),
  ($$'[{"task": "mail", "alias_of": "mail"}]'$$, 'alias_of'),
  ($$'[{"task": "mail", "alias_of": ""}]'$$, 'alias_of'),
  ($$jsonb_build_array(jsonb_build_object('task', 'mail', 'alias_of', repeat('x', 200)))$$, 'accepted'),
  ($$jsonb_build_array(jsonb_build_object('task', 'mail', 'alias_of', repeat('x', 201)))$$, 'alias_of'),
  ($$'[{"task": "b"}, {"task": "a"}, {"task": "b"}]'$$, 'p_tasks'),
  ($$'[{"task": "b"}, {"task": "a"}, {"task": "c"}]'$$, 'accepted')
) as v (tasks, expected);
select is_empty('select * from t.surprises()', 'every value is accepted or refused as it should be');
select is_empty('select * from trunkline.tasks', 'and a refusal stores nothing');

-- What is said about a batch names the place in the document, whatever the order of the names.
select is(
  t.refusal($$select trunkline.register_tasks('[{"task": "c"}, {"task": "b", "leese": 1, "cast": 2}, {"task": "a"}]')$$) - 'message' - 'must_be',
  '{"sqlstate": "TL028", "code": "invalid_argument", "argument": "p_tasks", "index": 1, "task": "b", "unknown_fields": ["cast", "leese"]}'::jsonb,
  'a field that no policy has'
);
select is(
  t.refusal($$select trunkline.register_tasks('[{"task": "c"}, {"task": "b"}, {"task": "a", "lease": "soon"}]')$$) - 'message' - 'must_be' - 'reason',
  '{"sqlstate": "TL028", "code": "invalid_argument", "argument": "p_tasks", "index": 2, "task": "a"}'::jsonb,
  'a value of another type'
);

select * from finish();
