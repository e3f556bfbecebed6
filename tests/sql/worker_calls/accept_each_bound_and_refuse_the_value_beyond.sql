-- Every argument of the calls that workers and operators make is accepted up to its bound, and refused beyond it.
\ir ../helpers/tools.sql
\ir ../helpers/cases.sql
select plan(8);

set session authorization trunkline_operator;
select trunkline.register_task(p_task => 'mail') \g /dev/null
set session authorization trunkline_worker;
select trunkline.register_worker(p_worker => 'w1') \g /dev/null
-- A batch of jobs that nobody knows: the arguments are checked first.
create function pg_temp.jobs(p_count integer) returns uuid[] language sql as $$
  select array_fill('00000000-0000-7000-8000-000000000000'::uuid, array[p_count])
$$;
create function pg_temp.ones(p_count integer) returns integer[] language sql as $$ select array_fill(1, array[p_count]) $$;
-- An array of one text of just so many bytes.
create function pg_temp.sized(p_bytes integer) returns text[] language sql as $$
  select array[repeat('x', p_bytes - pg_column_size(array['xxxx']) + 4)]
$$;
-- A JSON text of just so many bytes.
create function pg_temp.sized_json(p_bytes integer) returns jsonb language sql as $$ select to_jsonb(repeat('x', p_bytes - 12)) $$;
select is(pg_column_size(pg_temp.sized(5000)) || ' ' || pg_column_size(pg_temp.sized_json(5000)), '5000 5000', 'values of just that size');

insert into t.cases (call, expected)
select format(f.call, b.arguments), b.expected
from (values
  ('heartbeat(%s)'), ('complete(%s)'), ('fail(%s)'), ('snooze(%s)'), ('release(%s)'), ('acknowledge_cancel(%s)'), ('hand_over(%s)')
) as f (call)
cross join (values
  ($$repeat('w', 200), pg_temp.jobs(1), pg_temp.ones(1)$$, 'accepted'),
  ($$repeat('w', 201), pg_temp.jobs(1), pg_temp.ones(1)$$, 'worker_required'),
  ($$'', pg_temp.jobs(1), pg_temp.ones(1)$$, 'worker_required'),
  ($$null, pg_temp.jobs(1), pg_temp.ones(1)$$, 'worker_required'),
  ($$'w1', '{}', '{}'$$, 'accepted'),
  ($$'w1', null, null$$, 'array_length_mismatch'),
  ($$'w1', pg_temp.jobs(2), pg_temp.ones(1)$$, 'array_length_mismatch'),
  ($$'w1', pg_temp.jobs(1), null$$, 'array_length_mismatch'),
  ($$'w1', array[null]::uuid[], pg_temp.ones(1)$$, 'array_length_mismatch'),
  ($$'w1', pg_temp.jobs(1), '{null}'$$, 'array_length_mismatch'),
  ($$'w1', array[pg_temp.jobs(1), pg_temp.jobs(1)], pg_temp.ones(2)$$, 'array_length_mismatch'),
  ($$'w1', pg_temp.jobs(2), array[pg_temp.ones(1), pg_temp.ones(1)]$$, 'array_length_mismatch'),
  ($$'w1', pg_temp.jobs(10001), pg_temp.ones(10001)$$, 'p_jobs')
) as b (arguments, expected);
insert into t.cases (call, expected) values
  ($$heartbeat('w1', pg_temp.jobs(10000), pg_temp.ones(10000))$$, 'accepted'),
  ($$complete('w1', pg_temp.jobs(1), pg_temp.ones(1), array['1', '2']::jsonb[])$$, 'array_length_mismatch'),
  ($$fail('w1', pg_temp.jobs(1), pg_temp.ones(1), p_errors => array['1', '2']::jsonb[])$$, 'array_length_mismatch'),
  ($$fail('w1', pg_temp.jobs(1), pg_temp.ones(1), p_retryable => '{}')$$, 'array_length_mismatch'),
  ($$fail('w1', pg_temp.jobs(1), pg_temp.ones(1), p_delays => '{1 s, 1 s}')$$, 'array_length_mismatch'),
  ($$snooze('w1', pg_temp.jobs(1), pg_temp.ones(1), p_delays => '{1 s, 1 s}')$$, 'array_length_mismatch'),
  ($$acknowledge_cancel('w1', pg_temp.jobs(1), pg_temp.ones(1), p_reasons => '{a, b}')$$, 'array_length_mismatch'),
  ($$hand_over('w1', pg_temp.jobs(1), pg_temp.ones(1), p_errors => array['1', '2']::jsonb[])$$, 'array_length_mismatch'),
  ($$snooze('w1', pg_temp.jobs(3), pg_temp.ones(3), p_delays => '{0, 3650 days, 1 s}')$$, 'accepted'),
  ($$snooze('w1', pg_temp.jobs(3), pg_temp.ones(3), p_delays => '{0, 3650 days 1 microsecond, 1 s}')$$, 'p_delays'),
  ($$snooze('w1', pg_temp.jobs(3), pg_temp.ones(3), p_delays => '{0, -1 microsecond, 1 s}')$$, 'negative_delay'),
  ($$fail('w1', pg_temp.jobs(1), pg_temp.ones(1), p_delays => '{3651 days}')$$, 'p_delays'),
  ($$progress('w1', (pg_temp.jobs(1))[1], 1, p_percent => 0)$$, 'accepted'),
  ($$progress('w1', (pg_temp.jobs(1))[1], 1, p_percent => 100)$$, 'accepted'),
  ($$progress('w1', (pg_temp.jobs(1))[1], 1, p_percent => 101)$$, 'limit_out_of_range'),
  ($$progress('w1', (pg_temp.jobs(1))[1], 1, p_percent => -1)$$, 'limit_out_of_range'),
  ($$progress('', (pg_temp.jobs(1))[1], 1)$$, 'worker_required'),
  ($$claim(repeat('w', 200))$$, 'accepted'), ($$claim(repeat('w', 201))$$, 'worker_required'), ($$claim('')$$, 'worker_required'),
  ($$claim('w1', p_limit => 1)$$, 'accepted'), ($$claim('w1', p_limit => 0)$$, 'limit_out_of_range'),
  ($$claim('w1', p_limit => 10000)$$, 'accepted'), ($$claim('w1', p_limit => 10001)$$, 'limit_out_of_range'),
  ($$claim('w1', p_limit => null)$$, 'limit_out_of_range'),
  ($$claim('w1', p_limited => 0)$$, 'accepted'), ($$claim('w1', p_limited => -1)$$, 'limit_out_of_range'),
  ($$claim('w1', p_limited => 10000)$$, 'accepted'), ($$claim('w1', p_limited => 10001)$$, 'limit_out_of_range'),
  ($$release_forgotten(repeat('w', 200), '{}')$$, 'accepted'), ($$release_forgotten(repeat('w', 201), '{}')$$, 'worker_required'),
  ($$release_forgotten('w1', pg_temp.jobs(100000))$$, 'accepted'), ($$release_forgotten('w1', pg_temp.jobs(100001))$$, 'p_known'),
  ($$release_forgotten('w1', array[pg_temp.jobs(1), pg_temp.jobs(1)])$$, 'p_known'), ($$release_forgotten('w1', null)$$, 'p_known'),
  ($$sleep(repeat('w', 201))$$, 'worker_required'), ($$sleep(repeat('w', 200))$$, 'unknown_worker'),
  ($$sleep('w1', array_fill('q'::text, array[1000]))$$, 'accepted'), ($$sleep('w1', array_fill('q'::text, array[1001]))$$, 'p_queues'),
  ($$sleep('w1', array[repeat('q', 200)])$$, 'accepted'), ($$sleep('w1', array['q', repeat('q', 201)])$$, 'p_queues'),
  ($$sleep('w1', array['q', ''])$$, 'p_queues'), ($$sleep('w1', array['q', null])$$, 'p_queues'), ($$sleep('w1', '{{a}, {b}}')$$, 'p_queues'),
  ($$register_worker(repeat('w', 200))$$, 'accepted'), ($$register_worker(repeat('w', 201))$$, 'worker_required'),
  ($$register_worker(null)$$, 'worker_required'), ($$register_worker('')$$, 'worker_required'),
  ($$register_worker('w2', p_pulse_interval => '1 microsecond')$$, 'accepted'), ($$register_worker('w2', p_pulse_interval => '0')$$, 'p_pulse_interval'),
  ($$register_worker('w2', p_pulse_interval => '1 hour')$$, 'accepted'),
  ($$register_worker('w2', p_pulse_interval => '1 hour 1 microsecond')$$, 'p_pulse_interval'),
  ($$register_worker('w2', p_detail => pg_temp.sized_json(65536))$$, 'accepted'),
  ($$register_worker('w2', p_detail => pg_temp.sized_json(65540))$$, 'p_detail'),
  ($$register_worker('w2', p_detail => '{"signatures": {}}')$$, 'accepted'),
  ($$register_worker('w2', p_detail => '{"signatures": []}')$$, 'p_detail'),
  ($$register_worker('w2', p_detail => jsonb_build_object('signatures', jsonb_build_object('t', repeat('x', 1000000))))$$, 'accepted'),
  ($$register_worker('w2', p_detail => jsonb_build_object('signatures', jsonb_build_object('t', repeat('x', 1048577))))$$, 'p_detail'),
  ($$pulse('w1', pg_temp.sized_json(65536))$$, 'accepted'), ($$pulse('w1', pg_temp.sized_json(65540))$$, 'p_detail');
-- Lists of names, wherever they are taken.
insert into t.cases (call, expected)
select format(f.call, n.names), case when n.expected then 'accepted' else 'p_queues or p_tasks' end
from (values ($$claim('w1', p_queues => %s)$$), ($$claim('w1', p_tasks => %s)$$), ($$register_worker('w2', p_queues => %s)$$), ($$register_worker('w2', p_tasks => %s)$$)) as f (call)
cross join (values
  ($$array_fill('q'::text, array[10000])$$, true), ($$array_fill('q'::text, array[10001])$$, false), ($$'{}'$$, true), ($$'{{a}, {b}}'$$, false),
  ($$pg_temp.sized(1048576)$$, true), ($$pg_temp.sized(1048580)$$, false)
) as n (names, expected);
select is_empty('select * from t.surprises()', 'of a worker');

set session authorization trunkline_operator;
delete from t.cases;
insert into t.cases (call, expected)
select format(f.call, n.name), n.expected
from (values ('pause_queue(%s)'), ('limit_queue(%s, 1)'), ('age_queue(%s)')) as f (call)
cross join (values ($$repeat('q', 200)$$, 'accepted'), ($$repeat('q', 201)$$, 'p_queue'), ($$''$$, 'p_queue'), ('null', 'p_queue')) as n (name, expected);
insert into t.cases (call, expected)
select format(f.call, n.limit_), case when n.limit_::integer between 1 and f.most then 'accepted' else 'limit_out_of_range' end
from (values
  ('list_jobs(p_limit => %s)', 1000), ('find_jobs(p_limit => %s)', 10000), ('deferred_jobs(p_limit => %s)', 10000),
  ('limit_queue(''q'', %s)', 2147483647)
) as f (call, most)
cross join (values ('1'), ('0'), ('1000'), ('1001'), ('10000'), ('10001')) as n (limit_);
insert into t.cases (call, expected) values
  ($$list_jobs(p_states => array_fill('ready'::text, array[100]))$$, 'accepted'),
  ($$list_jobs(p_states => array_fill('ready'::text, array[101]))$$, 'p_states'),
  ($$list_jobs(p_states => '{ready, redy}')$$, 'p_states');
select is_empty('select * from t.surprises()', 'of an operator');

-- What is said, in full.
set session authorization trunkline_worker;
select is(
  t.refusal($$select trunkline.fail('w1', pg_temp.jobs(2), pg_temp.ones(3), p_delays => '{1 s}')$$) - 'message',
  '{"sqlstate": "TL008", "code": "array_length_mismatch", "jobs": 2, "attempts": 3, "others": [1]}'::jsonb, 'lengths'
);
select is(
  t.refusal($$select trunkline.claim('w1', p_limited => 10001)$$) - 'message',
  '{"sqlstate": "TL006", "code": "limit_out_of_range", "limited": 10001, "minimum": 0, "maximum": 10000}'::jsonb, 'limits'
);
select is(
  t.refusal($$select trunkline.snooze('w1', pg_temp.jobs(3), pg_temp.ones(3), p_delays => '{1 s, 3651 days, 3652 days}')$$) - 'message',
  '{"sqlstate": "TL028", "code": "invalid_argument", "argument": "p_delays", "must_be": "at most 3650 days", "delay": "3651 days"}'::jsonb, 'delays'
);
set session authorization trunkline_operator;
select is(
  t.refusal($$select trunkline.drain_worker('w9')$$) - 'message', '{"sqlstate": "TL025", "code": "unknown_worker", "worker": "w9"}'::jsonb, 'workers'
);
select is(
  t.refusal($$select trunkline.resume_queue('q9')$$) - 'message',
  '{"sqlstate": "TL026", "code": "unknown_queue", "queue": "q9", "known": ["default"]}'::jsonb, 'queues'
);

select * from finish();
