-- RF-50, RF-48: partitions exist before their time comes, and what the default partition caught is moved into them.
\ir ../helpers/tools.sql
\ir ../../support/internals/internals.sql
select plan(10);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
-- The installation made them; a day may have passed since.
select trunkline.maintain_partitions() \g /dev/null
select is(trunkline.maintain_partitions(), 0, 'all that is needed is there');
select is(
  (select count(*) from t.partitions() where parent = 'finished' and lower_bound > trunkline.clock() and lower_bound <= trunkline.clock() + interval '7 days'),
  7::bigint,
  'the days of a week ahead'
);
select ok(
  (select bool_and(max_upper > trunkline.clock() + interval '7 days') from (select max(upper_bound) as max_upper from t.partitions() group by parent) as p),
  'of every table'
);

-- Nobody ran the duty for a month, but work went on.
select trunkline_test.move_time('28 days') \g /dev/null
select t.started('mail') as early \gset
select trunkline.complete(p_worker => 'w1', p_jobs => array[:'early']::uuid[], p_attempts => array[1], p_results => array[jsonb_build_object('text', repeat('x', 5000))]) \g /dev/null
select trunkline_test.move_time('2 days') \g /dev/null
select t.started('mail') as job \gset
select trunkline.complete(p_worker => 'w1', p_jobs => array[:'job']::uuid[], p_attempts => array[1]) \g /dev/null
select t.dead('mail') as dead \gset
select is(
  (select detail from trunkline.health() where "check" = 'default partitions' and not ok),
  '{"finished": true, "bodies": true, "recorded_steps": false, "events": true}'::jsonb,
  'health tells that the defaults are in use'
);
select ok(trunkline.maintain_partitions() > 0, 'the duty makes the missing partitions');
select is((select ok from trunkline.health() where "check" = 'default partitions'), true, 'and empties the defaults, of days gone by too');
select is((t.job(:'early')).state, 'completed', 'the job of an earlier day is still found');
select is(length((t.job(:'early')).result ->> 'text'), 5000, 'with its result');
select is((t.event(:'dead')).kind, 'failed', 'so are the events');
select is(trunkline.maintain_partitions(), 0, 'a second run has nothing to do');

select * from finish();
