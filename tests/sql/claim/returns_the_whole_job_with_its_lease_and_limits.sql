-- A claimed job comes with all that was enqueued, and with a lease that never outlasts its hard limit.
\ir ../helpers/tools.sql
\ir ../../support/internals/frozen.sql
select plan(7);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'plain') \g /dev/null
select trunkline.register_task(p_task => 'leased', p_lease => '20 seconds') \g /dev/null
select trunkline.register_task(p_task => 'short', p_lease => '20 seconds', p_hard_limit => '15 seconds') \g /dev/null
select trunkline.register_task(p_task => 'long', p_lease => '20 seconds', p_hard_limit => '1 hour') \g /dev/null
select trunkline.enqueue(p_task => 'plain', p_payload => '{"n": 1}') \g /dev/null
select trunkline.enqueue(p_task => 'leased', p_payload => jsonb_build_object('n', 2, 'x', repeat('y', 2000))) \g /dev/null
select trunkline.enqueue(
  p_task => 'short', p_payload => '{"n": 3}', p_queue => 'post', p_priority => -7, p_tenant => 'acme', p_unique_key => 'u',
  p_correlation_id => 'c', p_max_attempts => 7, p_tags => array['a', 'b'], p_expires_at => :'noon'::timestamptz + interval '1 day'
) \g /dev/null
select trunkline.enqueue(p_task => 'long', p_payload => jsonb_build_object('n', 4, 'x', repeat('z', 2000))) \g /dev/null

set session authorization trunkline_worker;
select trunkline_test.move_time('10 seconds') \g /dev/null
create temporary table claimed as
select c.*, row_number() over () as place from trunkline.claim(p_worker => 'w1', p_limit => 10) as c;
select is(
  (select array_agg(concat_ws(' ', task, payload ->> 'n', length(payload ->> 'x'), left(payload ->> 'x', 1)) order by place) from claimed),
  array['plain 1', 'leased 2 2000 y', 'long 4 2000 z', 'short 3'],
  'the higher priority first, then the older, each with its own payload'
);
select is(
  (select array_agg(concat_ws(' ', task, lease_expires_at - claimed_at, hard_deadline - claimed_at) order by place) from claimed),
  array['plain 00:05:00 00:20:00', 'leased 00:00:20 00:01:20', 'long 00:00:20 01:00:00', 'short 00:00:15 00:00:15'],
  'the lease of the task or the setting, and four leases as the hard limit, unless the task has another'
);
select is(
  (select to_jsonb(c) - '{job_id,created_at,run_at,claimed_at,lease_expires_at,hard_deadline,place}'::text[] from claimed as c where task = 'short'),
  '{"attempt": 1, "task": "short", "queue": "post", "priority": -7, "payload": {"n": 3}, "tenant": "acme", "correlation_id": "c",
    "tags": ["a", "b"], "failures": 0, "deferrals": 0, "max_attempts": 7, "last_error": null, "position": null, "start_by": null,
    "workflow_id": null}'::jsonb,
  'all that was enqueued'
);
select is(
  (select array_agg(distinct t.after_noon(created_at) || ' ' || t.after_noon(run_at) || ' ' || t.after_noon(claimed_at)) from claimed),
  array['00:00:00 00:00:00 00:00:10'],
  'with its times'
);
select is_empty($$select * from trunkline.claim(p_worker => 'w1', p_limit => 10)$$, 'nothing is claimed twice');

-- A heartbeat extends the lease up to the hard limit, and is of no use from then on.
create function pg_temp.beat() returns text[] language sql as $$
  select array_agg(c.task || ' ' || v.verdict || ' ' || (v.run_at - c.claimed_at) order by c.place)
  from (select array_agg(job_id order by place) as jobs, array_agg(attempt order by place) as attempts from claimed) as a
  cross join lateral trunkline.heartbeat(p_worker => 'w1', p_jobs => a.jobs, p_attempts => a.attempts) as v
  join claimed as c on c.job_id = v.job_id
$$;
select trunkline_test.move_time('14 seconds') \g /dev/null
select is(
  pg_temp.beat(),
  array['plain ok 00:05:14', 'leased ok 00:00:34', 'long ok 00:00:34', 'short ok 00:00:15'],
  'a heartbeat shortly before the hard limit'
);
select trunkline_test.move_time('1 second') \g /dev/null
select is(
  pg_temp.beat(),
  array['plain ok 00:05:15', 'leased ok 00:00:35', 'long ok 00:00:35', 'short lost 00:00:15'],
  'and one at the hard limit'
);

select * from finish();
