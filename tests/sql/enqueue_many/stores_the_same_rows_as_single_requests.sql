-- A request is stored alike by enqueue, as one of a set, and as one of a batch that is enqueued one by one.
\ir ../helpers/tools.sql
\ir ../../support/internals/frozen.sql
select plan(15);

create table t.requests (place integer, request jsonb);
create table t.answers (way text, place integer, answer trunkline.enqueued);
grant all on t.requests, t.answers to public;
-- All that is stored of a job, and of its bodies, queues and events, without what differs from job to job.
create function t.stored(p_way text) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select jsonb_agg(
    to_jsonb(j) - '{job_id,unique_key}'::text[]
      || jsonb_build_object('answer', to_jsonb(a.answer) - 'job_id', 'events', (
        select jsonb_agg(to_jsonb(e) - 'job_id') from trunkline.events as e where e.job_id = j.job_id
      ))
    order by a.place
  )
  from t.answers as a
  join trunkline.job(p_job => (a.answer).job_id) as j on true
  where a.way = p_way
$$;
set session authorization trunkline_operator;
select trunkline.set_limit('api', '{"tokens_per_minute": 1000, "requests_per_minute": 100}') \g /dev/null
select trunkline.set_limit('model/{model}', '{"concurrency": 2}') \g /dev/null
select trunkline.set_limit('both/{tenant}/{model}', '{"requests_per_minute": 5}') \g /dev/null
set session authorization trunkline_producer;
select
  trunkline.register_task(p_task => 'mail', p_priority => 3, p_max_attempts => 9, p_queue => 'post'),
  trunkline.register_task(p_task => 'audited', p_audit => true),
  trunkline.register_task(p_task => 'limited', p_limits => array['api'], p_cost => '{"tokens": 7}'),
  trunkline.register_task(p_task => 'keyed', p_limits => array['model/{model}']),
  trunkline.register_task(p_task => 'twice', p_limits => array['both/{tenant}/{model}', 'api']) \g /dev/null
insert into t.requests
select v.ordinality, v.request
from unnest(array[
  '{"task": "mail"}',
  '{"task": "mail", "payload": {"n": 1}, "queue": "other", "priority": -50, "tenant": "acme", "correlation_id": "c", "max_attempts": 2, "tags": ["a", "b"]}',
  '{"task": "mail", "delay": "1 hour", "priority": 49}',
  '{"task": "audited", "delay": "0 seconds"}',
  '{"task": "audited", "correlation_id": "k", "priority": 1}',
  '{"task": "audited", "delay": "10 seconds"}',
  '{"task": "limited"}',
  '{"task": "limited", "cost": {"tokens": 100}}',
  '{"task": "limited", "cost": {"requests": 2, "units": 5}}',
  '{"task": "limited", "delay": "30 seconds"}',
  '{"task": "keyed", "payload": {"model": "x"}}',
  '{"task": "keyed", "payload": {"model": "y"}, "queue": "other"}',
  '{"task": "twice", "payload": {"model": "x", "tenant": "b"}}',
  '{"task": "twice", "payload": {"model": "y"}, "tenant": "a", "priority": 5}'
]::jsonb[]) with ordinality as v (request, ordinality)
union all
select 15, jsonb_build_object('task', 'mail', 'run_at', :'noon'::timestamptz - interval '1 day')
union all
select 16, jsonb_build_object('task', 'mail', 'run_at', :'noon'::timestamptz + interval '1 day', 'expires_at', :'noon'::timestamptz + interval '2 days')
union all
select 17, jsonb_build_object('task', 'mail', 'payload', jsonb_build_object('x', repeat('y', 2000)))
union all
select 18, jsonb_build_object('task', 'audited', 'payload', jsonb_build_object('x', repeat('z', 2000)), 'run_at', :'noon'::timestamptz + interval '1 day');
insert into t.answers
select 'single', r.place, (select a from trunkline.enqueue_many(jsonb_build_array(r.request)) as a)
from t.requests as r order by r.place;
insert into t.answers
select 'set', a.place, a.answer
from (
  select e as answer, row_number() over () as place from trunkline.enqueue_many((select jsonb_agg(r.request order by r.place) from t.requests as r)) as e
) as a;
insert into t.answers
select 'each', a.place, a.answer
from (
  select e as answer, row_number() over () as place
  from trunkline.enqueue_many((select jsonb_agg(r.request || '{"accepted": false}' order by r.place) from t.requests as r)) as e
) as a;
select is(t.stored('set'), t.stored('single'), 'as a set');
select is(t.stored('each'), t.stored('single'), 'one by one');
select is(
  (select array_agg(j.state || ' ' || t.after_noon(j.run_at) order by a.place) from t.answers as a, t.job((a.answer).job_id) as j where a.way = 'set'),
  array[
    'ready 00:00:00', 'ready 00:00:00', 'scheduled 01:00:00', 'ready 00:00:00', 'ready 00:00:00', 'scheduled 00:00:10', 'ready 00:00:00',
    'ready 00:00:00', 'ready 00:00:00', 'scheduled 00:00:30', 'ready 00:00:00', 'ready 00:00:00', 'ready 00:00:00', 'ready 00:00:00',
    'ready -1 days', 'scheduled 1 day', 'ready 00:00:00', 'scheduled 1 day'
  ],
  'ready or scheduled'
);
-- A claim serves the three sets of jobs in the order in which they were enqueued, by priority, each job of a set in its order.
set session authorization trunkline_worker;
create temporary table claimed as
select c.job_id, c.queue, c.priority, row_number() over () as place from trunkline.claim(p_worker => 'w1', p_limit => 100) as c;
select is(
  (select array_agg(a.place || ' ' || a.way order by c.place) from claimed as c join t.answers as a on (a.answer).job_id = c.job_id
    where a.place in (4, 5, 7, 8, 9) and a.way in ('single', 'set')),
  array['5 single', '5 set', '4 single', '7 single', '8 single', '9 single', '4 set', '7 set', '8 set', '9 set'],
  'in the order of the request'
);
select is(
  (select array_agg(distinct a.place order by a.place) from claimed as c join t.answers as a on (a.answer).job_id = c.job_id),
  array[1, 2, 4, 5, 7, 8, 9, 11, 12, 13, 14, 15, 17], 'all that is ready is found, in whatever queue'
);
set session authorization trunkline_operator;
-- Three ways, each: a request of each job that was claimed, and the tokens of its own cost.
select results_eq(
  'select name, requests_of_minute, tokens_of_minute from trunkline.buckets where requests_of_minute > 0 order by name',
  $$values ('api', 18::bigint, 321::bigint), ('both/a/y', 3, 0), ('both/b/x', 3, 0)$$,
  'with the costs of the request or the task'
);
select results_eq(
  $$select name, in_use from trunkline.buckets where name like 'model/%' order by name$$,
  $$values ('model/x', 2::bigint), ('model/y', 2)$$,
  'for the limit that the payload names'
);

-- The payloads of one task are requests without options.
set session authorization trunkline_producer;
create temporary table batches as
select t.task, (trunkline.enqueue_batch(t.task, (
  select jsonb_agg(jsonb_build_object('n', n, 'model', 'b', 'tenant', 'b', 'x', repeat('x', case when t.large then 2000 else 1 end)) order by n)
  from generate_series(1, 3) as n
))).*
from (values ('mail', false), ('mail', true), ('audited', false), ('limited', false), ('keyed', false), ('twice', true)) as t (task, large);
select results_eq(
  'select task, cardinality(job_ids), state, t.after_noon(run_at) from batches',
  $$values ('mail', 3, 'ready', interval '0'), ('mail', 3, 'ready', '0'), ('audited', 3, 'ready', '0'), ('limited', 3, 'ready', '0'), ('keyed', 3, 'ready', '0'), ('twice', 3, 'ready', '0')$$,
  'a batch of payloads'
);
select is(
  (select array_agg(b.task || ' ' || (j.payload ->> 'n') || ' ' || j.queue || ' ' || j.priority || ' ' || j.max_attempts || ' ' || j.state order by b.task, b.job_ids, i.place)
   from batches as b, unnest(b.job_ids) with ordinality as i (job_id, place), t.job(i.job_id) as j where b.task in ('mail', 'audited')),
  array[
    'audited 1 default 0 4 ready', 'audited 2 default 0 4 ready', 'audited 3 default 0 4 ready',
    'mail 1 post 3 9 ready', 'mail 2 post 3 9 ready', 'mail 3 post 3 9 ready', 'mail 1 post 3 9 ready', 'mail 2 post 3 9 ready', 'mail 3 post 3 9 ready'
  ],
  'has the policy of its task, in the order of the payloads'
);
grant select on batches to public;
set session authorization trunkline_operator;
select is(
  (select array_agg(e.kind || ' ' || e.to_state || ' ' || e.detail::text order by i.place) from batches as b, unnest(b.job_ids) with ordinality as i (job_id, place), trunkline.events as e
   where b.task = 'audited' and e.job_id = i.job_id),
  array_fill('enqueued ready ' || jsonb_build_object('run_at', :'noon'::timestamptz, 'priority', 0, 'correlation_id', null)::text, array[3]),
  'and its audit'
);
set session authorization trunkline_producer;
select is((trunkline.enqueue_batch('mail', '[]')), row('{}'::uuid[], 'ready', :'noon'::timestamptz)::trunkline.enqueued_batch, 'no payloads, no jobs');
select is((select count(*) from trunkline.enqueue_many('[]')), 0::bigint, 'nor are there answers for no requests');
select is(
  t.refusal($$select trunkline.enqueue_batch('unheard', '[{}, {}]')$$) ->> 'code', 'unknown_task', 'a task that nobody registered'
);
select is(
  t.refusal($$select trunkline.enqueue_batch('keyed', '[{"model": "x"}, {}]')$$) - 'message' - 'hint',
  '{"sqlstate": "TL031", "code": "limit_key_missing", "index": 1, "task": "keyed", "limit": "model/{model}"}'::jsonb,
  'a payload without the key of its limit'
);
select is(
  t.refusal($$select trunkline.enqueue_many('[{"task": "limited"}, {"task": "limited", "cost": {"tokens": 1001}}]')$$) ->> 'index', '1',
  'or a cost that never fits'
);

select * from finish();
