-- At enqueue a limit defers or refuses jobs that would wait too long, alike for single requests and for batches.
\ir ../helpers/tools.sql
\ir ../../support/internals/frozen.sql
select plan(35);

-- What becomes of jobs of a task: state and due time of each, or the refusal. `p_way` is one, set or batch.
create function t.tried(p_way text, p_task text, p_jobs integer default 1, p_more jsonb default '{}') returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_detail text;
  v_rows text;
begin
  if p_way = 'batch' then
    select concat_ws(' ', cardinality(b.job_ids), b.state, t.after_noon(b.run_at)) into v_rows
    from trunkline.enqueue_batch(p_task, (select jsonb_agg(coalesce(p_more -> 'payload', '{}')) from generate_series(1, p_jobs))) as b;
  else
    select string_agg(concat_ws(' ', e.jobs, e.state, t.after_noon(e.run_at)), ', ') into v_rows
    from (
      select count(*) as jobs, e.state, e.run_at
      from trunkline.enqueue_many((select jsonb_agg(jsonb_build_object('task', p_task) || p_more) from generate_series(1, p_jobs))) as e
      group by e.state, e.run_at order by e.run_at
    ) as e;
  end if;
  return v_rows;
exception
  when others then
    get stacked diagnostics v_detail = pg_exception_detail;
    return case when sqlstate like 'TL%' then (v_detail::jsonb || jsonb_strip_nulls(jsonb_build_object('free_at', t.after_noon((v_detail::jsonb ->> 'free_at')::timestamptz))))::text else sqlerrm end;
end;
$$;
create function t.claim(p_task text, p_jobs integer) returns bigint
language sql security definer set search_path = pg_catalog, pg_temp
as $$ select count(*) from trunkline.claim('w1', p_limit => p_jobs, p_tasks => array[p_task]) $$;
set session authorization trunkline_operator;
select
  trunkline.set_limit('rpm', '{"requests_per_minute": 10, "backpressure_threshold": 0.5, "backpressure_delay": "7 seconds"}'),
  trunkline.set_limit('tpm', '{"tokens_per_minute": 100, "backpressure_threshold": 0.8}'),
  trunkline.set_limit('deep', '{"concurrency": 1, "depth_limit": 5}'), trunkline.set_limit('soft', '{"concurrency": 1, "depth_limit": 5, "depth_refuses": false, "backpressure_delay": "20 seconds"}'),
  trunkline.set_limit('key/{key}', '{"concurrency": 1, "depth_limit": 3}'), trunkline.set_limit('spent', '{"quota": 4, "quota_unit": "requests", "quota_period": "day"}'),
  trunkline.set_limit('free', '{"concurrency": 100}') \g /dev/null
select
  trunkline.register_task('rpm', p_limits => array['rpm']), trunkline.register_task('tpm', p_limits => array['tpm'], p_cost => '{"tokens": 20}'),
  trunkline.register_task('deep', p_limits => array['deep']), trunkline.register_task('soft', p_limits => array['soft']), trunkline.register_task('key', p_limits => array['key/{key}']),
  trunkline.register_task('spent', p_limits => array['spent']), trunkline.register_task('both', p_limits => array['free', 'deep']), trunkline.register_task('free', p_limits => array['free']) \g /dev/null
-- Backpressure: as long as more than the share of a minute is used.
select is(
  t.tried('set', 'rpm', 9),
  '9 ready 00:00:00',
  'while nothing is used'
);
select is(
  t.claim('rpm', 5),
  '5',
  'half of it'
);
select is(
  array[t.tried('one', 'rpm'), t.tried('set', 'rpm', 2), t.tried('batch', 'rpm', 2)],
  '{"1 ready 00:00:00","2 ready 00:00:00","2 ready 00:00:00"}',
  'defers nothing'
);
select is(
  t.claim('rpm', 1),
  '1',
  'more than half'
);
select is(
  array[t.tried('one', 'rpm'), t.tried('set', 'rpm', 2), t.tried('batch', 'rpm', 2)],
  '{"1 scheduled 00:00:07","2 scheduled 00:00:07","2 scheduled 00:00:07"}',
  'defers what comes'
);
select is(
  array[t.tried('one', 'rpm', 1, '{"delay": "10 seconds"}'), t.tried('set', 'rpm', 2, '{"delay": "10 seconds"}')],
  '{"1 scheduled 00:00:10","2 scheduled 00:00:10"}',
  'but not what is due later anyway'
);
select is(
  array[t.tried('one', 'rpm', 1, '{"delay": "3 seconds"}'), t.tried('set', 'rpm', 2, '{"delay": "3 seconds"}')],
  '{"1 scheduled 00:00:07","2 scheduled 00:00:07"}',
  'and not what is due sooner less'
);
select is(
  array[t.tried('one', 'free'), t.tried('set', 'free', 2)],
  '{"1 ready 00:00:00","2 ready 00:00:00"}',
  'other limits are not concerned'
);
select is(
  array[t.tried('set', 'tpm', 6), t.claim('tpm', 4)::text, t.tried('one', 'tpm')],
  '{"6 ready 00:00:00",4,"1 ready 00:00:00"}',
  'tokens'
);
select is(
  array[t.claim('tpm', 1)::text, t.tried('one', 'tpm'), t.tried('set', 'tpm', 2), t.tried('batch', 'tpm', 3)],
  '{1,"1 scheduled 00:00:05","2 scheduled 00:00:05","3 scheduled 00:00:05"}',
  'more than four fifths of them'
);
select trunkline.set_limit('tpm', '{}', 'maintenance') \g /dev/null
select is(
  array[t.tried('one', 'tpm'), t.tried('set', 'tpm', 2)],
  '{"1 ready 00:00:00","2 ready 00:00:00"}',
  'a limit that is switched off defers nothing'
);
select trunkline_test.move_time('62 seconds') \g /dev/null
select is(
  array[t.tried('one', 'rpm'), t.tried('set', 'rpm', 2)],
  '{"1 ready 00:01:02","2 ready 00:01:02"}',
  'after the minute there is room'
);
-- Depth: how many may wait.
select is(
  array[t.tried('one', 'deep'), t.tried('set', 'deep', 2), t.tried('batch', 'deep', 2)],
  '{"1 ready 00:01:02","2 ready 00:01:02","2 ready 00:01:02"}',
  'up to the depth'
);
select is(
  array[t.tried('one', 'deep'), t.tried('set', 'deep', 2), t.tried('batch', 'deep', 2)],
  '{"{\"code\": \"limit_queue_full\", \"asked\": 1, \"index\": 0, \"limit\": \"deep\", \"waiting\": 5, \"depth_limit\": 5}","{\"code\": \"limit_queue_full\", \"asked\": 2, \"limit\": \"deep\", \"waiting\": 5, \"depth_limit\": 5}","{\"code\": \"limit_queue_full\", \"asked\": 2, \"limit\": \"deep\", \"waiting\": 5, \"depth_limit\": 5}"}',
  'one more is refused'
);
select is(
  t.tried('one', 'deep', 1, '{"accepted": true}'),
  '1 ready 00:01:02',
  'unless it was accepted before'
);
select is(
  array[t.claim('deep', 10)::text, t.tried('one', 'deep'), t.tried('one', 'deep')],
  '{1,"{\"code\": \"limit_queue_full\", \"asked\": 1, \"index\": 0, \"limit\": \"deep\", \"waiting\": 5, \"depth_limit\": 5}","{\"code\": \"limit_queue_full\", \"asked\": 1, \"index\": 0, \"limit\": \"deep\", \"waiting\": 5, \"depth_limit\": 5}"}',
  'what runs does not wait'
);
select is(
  array[t.tried('set', 'key', 4, '{"payload": {"key": "a"}}'), t.tried('batch', 'key', 4, '{"payload": {"key": "a"}}')],
  '{"{\"code\": \"limit_queue_full\", \"asked\": 4, \"limit\": \"key/{key}\", \"waiting\": 0, \"depth_limit\": 3}","{\"code\": \"limit_queue_full\", \"asked\": 4, \"limit\": \"key/{key}\", \"waiting\": 0, \"depth_limit\": 3}"}',
  'a batch that is too large is refused as a whole'
);
select is(
  array[t.tried('set', 'key', 3, '{"payload": {"key": "a"}}'), t.tried('set', 'key', 3, '{"payload": {"key": "b"}}'), t.tried('one', 'key', 1, '{"payload": {"key": "b"}}'), t.tried('one', 'key', 1, '{"payload": {"key": "c"}}')],
  '{"3 ready 00:01:02","3 ready 00:01:02","{\"code\": \"limit_queue_full\", \"asked\": 1, \"index\": 0, \"limit\": \"key/b\", \"waiting\": 3, \"depth_limit\": 3}","1 ready 00:01:02"}',
  'each key has its own depth'
);
select is(
  array[t.tried('one', 'key', 1, '{"payload": {"key": "d"}, "delay": "1 hour"}'), t.tried('set', 'key', 2, '{"payload": {"key": "d"}}'), t.tried('one', 'key', 1, '{"payload": {"key": "d"}}')],
  '{"1 scheduled 01:01:02","2 ready 00:01:02","{\"code\": \"limit_queue_full\", \"asked\": 1, \"index\": 0, \"limit\": \"key/d\", \"waiting\": 3, \"depth_limit\": 3}"}',
  'jobs that are scheduled count too'
);
select is(
  array[t.tried('one', 'both'), t.tried('one', 'free')],
  '{"{\"code\": \"limit_queue_full\", \"asked\": 1, \"index\": 0, \"limit\": \"deep\", \"waiting\": 5, \"depth_limit\": 5}","1 ready 00:01:02"}',
  'a job of two limits counts in both'
);
select trunkline.set_limit('deep', '{"depth_limit": 7}') \g /dev/null
select is(
  array[t.tried('one', 'both'), t.tried('one', 'both'), t.tried('one', 'deep')],
  '{"1 ready 00:01:02","1 ready 00:01:02","{\"code\": \"limit_queue_full\", \"asked\": 1, \"index\": 0, \"limit\": \"deep\", \"waiting\": 7, \"depth_limit\": 7}"}',
  'where there is room'
);
-- A depth that defers.
select is(
  array[t.tried('set', 'soft', 4), t.tried('one', 'soft'), t.tried('one', 'soft'), t.tried('set', 'soft', 2)],
  '{"4 ready 00:01:02","1 ready 00:01:02","1 scheduled 00:01:22","2 scheduled 00:01:22"}',
  'a soft depth'
);
select is(
  array[t.claim('soft', 1)::text, t.tried('set', 'soft', 3)],
  '{1,"3 scheduled 00:01:22"}',
  'what is scheduled waits too'
);
-- A quota that is spent.
select is(
  array[t.tried('set', 'spent', 2), t.claim('spent', 9)::text, t.tried('one', 'spent'), t.tried('one', 'spent', 1, '{"priority": -1}')],
  '{"2 ready 00:01:02",2,"1 ready 00:01:02","1 ready 00:01:02"}',
  'a quota'
);
select is(
  array[t.claim('spent', 9)::text, t.tried('one', 'spent', 1, '{"priority": -1}'), t.tried('set', 'spent', 2, '{"priority": -1}'), t.tried('one', 'spent')],
  '{1,"{\"code\": \"quota_spent\", \"unit\": \"requests\", \"index\": 0, \"limit\": \"spent\", \"quota\": 4, \"spent\": 3, \"free_at\": \"12:00:00\", \"given_out_up_to\": 3, \"only_priorities_from\": 0}","{\"code\": \"quota_spent\", \"unit\": \"requests\", \"index\": 0, \"limit\": \"spent\", \"quota\": 4, \"spent\": 3, \"free_at\": \"12:00:00\", \"given_out_up_to\": 3, \"only_priorities_from\": 0}","1 ready 00:01:02"}',
  'three quarters of it'
);
select is(
  array[t.claim('spent', 9)::text, t.tried('one', 'spent'), t.tried('set', 'spent', 2), t.tried('batch', 'spent', 2), t.tried('one', 'spent', 1, '{"accepted": true}')],
  '{1,"{\"code\": \"quota_spent\", \"unit\": \"requests\", \"index\": 0, \"limit\": \"spent\", \"quota\": 4, \"spent\": 4, \"free_at\": \"12:00:00\", \"given_out_up_to\": 4}","{\"code\": \"quota_spent\", \"unit\": \"requests\", \"index\": 0, \"limit\": \"spent\", \"quota\": 4, \"spent\": 4, \"free_at\": \"12:00:00\", \"given_out_up_to\": 4}","{\"code\": \"quota_spent\", \"unit\": \"requests\", \"index\": 0, \"limit\": \"spent\", \"quota\": 4, \"spent\": 4, \"free_at\": \"12:00:00\", \"given_out_up_to\": 4}","1 ready 00:01:02"}',
  'all of it'
);
set session authorization trunkline_producer;
select is(
  t.refusal('select trunkline.enqueue_many(''[{"task": "free"}, {"task": "free"}, {"task": "spent"}, {"task": "deep"}, {"task": "deep"}]'')') - 'message' - 'hint' - 'free_at',
  '{"code": "limit_queue_full", "asked": 2, "limit": "deep", "waiting": 7, "sqlstate": "TL034", "depth_limit": 7}',
  'of a batch the first job that is refused is named'
);
select is(
  t.refusal('select trunkline.enqueue_many(''[{"task": "free"}, {"task": "spent", "queue": "other"}, {"task": "spent"}, {"task": "spent", "queue": "third"}]'')') ->> 'index',
  '1',
  'also where they are for several queues'
);
set session authorization trunkline_operator;
-- Costs that never fit, and missing names.
select is(
  array[t.tried('one', 'tpm', 1, '{"cost": {"tokens": 100}}'), t.tried('one', 'tpm', 1, '{"cost": {"tokens": 101}}'), t.tried('set', 'tpm', 2, '{"cost": {"tokens": 101}}'), t.tried('one', 'rpm', 1, '{"cost": {"requests": 11}}')],
  '{"1 ready 00:01:02","{\"code\": \"cost_over_limit\", \"task\": \"tpm\", \"index\": 0, \"limit\": \"tpm\", \"units\": 0, \"tokens\": 101, \"requests\": 1, \"most_tokens\": 100}","{\"code\": \"cost_over_limit\", \"task\": \"tpm\", \"index\": 0, \"limit\": \"tpm\", \"units\": 0, \"tokens\": 101, \"requests\": 1, \"most_tokens\": 100}","{\"code\": \"cost_over_limit\", \"task\": \"rpm\", \"index\": 0, \"limit\": \"rpm\", \"units\": 0, \"tokens\": 0, \"requests\": 11, \"most_requests\": 10}"}',
  'a cost that never fits'
);
select is(
  array[t.tried('one', 'key'), t.tried('set', 'key', 2), t.tried('batch', 'key', 2, '{"payload": {"kee": "d"}}'), t.tried('one', 'key', 1, '{"payload": {"key": ""}}')],
  '{"{\"code\": \"limit_key_missing\", \"task\": \"key\", \"index\": 0, \"limit\": \"key/{key}\"}","{\"code\": \"limit_key_missing\", \"task\": \"key\", \"index\": 0, \"limit\": \"key/{key}\"}","{\"code\": \"limit_key_missing\", \"task\": \"key\", \"index\": 0, \"limit\": \"key/{key}\"}","{\"code\": \"limit_key_missing\", \"task\": \"key\", \"index\": 0, \"limit\": \"key/{key}\"}"}',
  'a key that is missing'
);
select trunkline.register_task('lost', p_limits => array['nowhere']) \g /dev/null
select is(
  array[t.tried('one', 'lost'), t.tried('set', 'lost', 2)],
  '{"{\"code\": \"unknown_limit\", \"task\": \"lost\", \"index\": 0, \"known\": [\"deep\", \"free\", \"key/{key}\", \"rpm\", \"soft\", \"spent\", \"tpm\"], \"limit\": \"nowhere\"}","{\"code\": \"unknown_limit\", \"task\": \"lost\", \"index\": 0, \"known\": [\"deep\", \"free\", \"key/{key}\", \"rpm\", \"soft\", \"spent\", \"tpm\"], \"limit\": \"nowhere\"}"}',
  'a limit that is missing'
);
-- Values of keys that look like names.
select is(
  array[t.tried('one', 'key', 1, '{"payload": {"key": "x/y"}}'), t.tried('one', 'key', 1, '{"payload": {"key": "50%"}}'), t.tried('set', 'key', 2, '{"payload": {"key": "{z}"}}')],
  '{"1 ready 00:01:02","1 ready 00:01:02","2 ready 00:01:02"}',
  'are kept apart'
);
select is(
  (select array_agg(b.name || ' ' || b.waiting order by b.name) from trunkline.buckets as b where b.limit = 'key/{key}'),
  '{"key/%7Bz%7D 2","key/50%25 1","key/a 3","key/b 3","key/c 1","key/d 2","key/x%2Fy 1"}',
  'and shown in code'
);
-- A limit with a filled-in name takes precedence.
select trunkline.set_limit('key/a', '{"concurrency": 2, "depth_limit": 4}') \g /dev/null
select is(
  array[t.tried('one', 'key', 1, '{"payload": {"key": "a"}}'), t.tried('one', 'key', 1, '{"payload": {"key": "a"}}'), t.tried('one', 'key', 1, '{"payload": {"key": "b"}}')],
  '{"1 ready 00:01:02","{\"code\": \"limit_queue_full\", \"asked\": 1, \"index\": 0, \"limit\": \"key/a\", \"waiting\": 4, \"depth_limit\": 4}","{\"code\": \"limit_queue_full\", \"asked\": 1, \"index\": 0, \"limit\": \"key/b\", \"waiting\": 3, \"depth_limit\": 3}"}',
  'for its key'
);
select is(
  array[t.claim('key', 10)::text, (select b.limit || ' ' || b.in_use || ' ' || b.waiting from trunkline.buckets as b where b.name = 'key/a')],
  '{8,"key/a 0 4"}',
  'also for jobs that waited before'
);

select * from finish();
