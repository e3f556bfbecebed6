-- A body of just the size that is kept with the job, and one byte more, come back as they were.
\ir ../helpers/tools.sql
\ir ../../support/internals/frozen.sql
select plan(8);

-- An object of just so many bytes as it is stored.
create function t.sized(p_bytes integer) returns jsonb language sql immutable as $$
  select jsonb_build_object('x', repeat('y', p_bytes - pg_column_size(jsonb_build_object('x', repeat('y', 4))) + 4))
$$;
set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select array_agg(pg_column_size(t.sized(n)) order by n) as sizes from unnest(array[1023, 1024, 1025]) as n \gset
select is(:'sizes'::integer[], array[1023, 1024, 1025], 'bodies of just that size');
set session authorization trunkline_producer;
select array_agg(e.job_id) as jobs from (
  select (trunkline.enqueue(p_task => 'mail', p_payload => t.sized(n))).job_id from unnest(array[1023, 1024, 1025]) as n
) as e \gset
select array_agg(e.job_id) as many from trunkline.enqueue_many((select jsonb_agg(jsonb_build_object('task', 'mail', 'payload', t.sized(n)) order by n) from unnest(array[1023, 1024, 1025]) as n)) as e \gset
select job_ids as batch from trunkline.enqueue_batch('mail', (select jsonb_agg(t.sized(n) order by n) from unnest(array[1023, 1024, 1025]) as n)) \gset
create function pg_temp.payloads(p_jobs uuid[]) returns boolean language sql as $$
  select array_agg((t.job(j)).payload order by p) = array[t.sized(1023), t.sized(1024), t.sized(1025)] from unnest(p_jobs) with ordinality as o (j, p)
$$;
select ok(pg_temp.payloads(:'jobs'), 'enqueued alone');
select ok(pg_temp.payloads(:'many'), 'in a batch');
select ok(pg_temp.payloads(:'batch'), 'as payloads');
set session authorization trunkline_worker;
select is(
  (select array_agg(pg_column_size(c.payload || '{}') order by c.created_at, c.job_id) from trunkline.claim(p_worker => 'w1', p_limit => 9) as c where c.job_id = any(:'jobs')),
  (select array_agg(pg_column_size((t.job(j)).payload || '{}') order by j) from unnest(:'jobs'::uuid[]) as j),
  'claimed'
);
select trunkline.complete('w1', :'jobs', array[1, 1, 1], array[t.sized(1023), t.sized(1024), t.sized(1025)]) \g /dev/null
select trunkline.complete('w1', (:'many'::uuid[])[1:2], array[1, 1], array[t.sized(1024), '1'::jsonb]) \g /dev/null
select is((select array_agg((t.job(j)).result order by p) from unnest(:'jobs'::uuid[]) with ordinality as o (j, p)), array[t.sized(1023), t.sized(1024), t.sized(1025)], 'results of a batch with a large one');
select is((select array_agg((t.job(j)).result order by p) from unnest((:'many'::uuid[])[1:2]) with ordinality as o (j, p)), array[t.sized(1024), '1'::jsonb], 'and of one without');
select ok(pg_temp.payloads(:'jobs'), 'the payloads of ended jobs');

select * from finish();
