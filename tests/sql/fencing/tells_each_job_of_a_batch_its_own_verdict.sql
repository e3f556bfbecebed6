-- Every call about attempts returns one row for each, in the order of the request, and moves only the live ones.
\ir ../helpers/tools.sql
\ir ../../support/internals/frozen.sql
select plan(16);

-- Three jobs of w1 in attempt 2, one of w2, one of another tenant, one that has ended and one that never was. The
-- request names the second of them twice, with its old attempt first, and is in no order.
create table t.batch (place integer, name text, job_id uuid, attempt integer);
grant all on t.batch to public;
create function t.prepare() returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_jobs uuid[];
begin
  truncate t.batch;
  for v_place in 1..3 loop
    v_jobs[v_place] := t.started('mail');
    perform trunkline.release(p_worker => 'w1', p_jobs => array[v_jobs[v_place]], p_attempts => array[1]);
    perform trunkline.claim(p_worker => 'w1');
  end loop;
  insert into t.batch values
    (1, 'third', v_jobs[3], 2), (2, 'old', v_jobs[2], 1), (3, 'first', v_jobs[1], 2), (4, 'second', v_jobs[2], 2),
    (5, 'of w2', t.started('mail', 'w2'), 1), (6, 'never', '00000000-0000-7000-8000-000000000000', 1), (7, 'ended', t.started('mail'), 1);
  perform trunkline.complete(p_worker => 'w1', p_jobs => array[b.job_id], p_attempts => array[1]) from t.batch as b where b.name = 'ended';
end;
$$;
set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_backoff => '{"base": 10, "jitter": 0}', p_lease => '60 seconds', p_hard_limit => '10 minutes') \g /dev/null

-- The answer of a call about the batch: name, attempt, verdict, state and due time of each row, in the order of the rows.
create function pg_temp.answer(p_function text, p_more text default '') returns text[] language plpgsql as $$
declare
  v_rows text[];
begin
  perform t.prepare();
  execute format(
    'select array_agg(concat_ws($1, b.name, v.verdict, v.state, t.after_noon(v.run_at)) order by v.place)
     from (
       select v.*, row_number() over () as place
       from trunkline.%s(p_worker => $2, p_jobs => $3, p_attempts => $4%s) as v
     ) as v left join t.batch as b on b.job_id = v.job_id and b.attempt = v.attempt',
    p_function, p_more
  )
  into v_rows
  using ' ', 'w1', (select array_agg(job_id order by place) from t.batch), (select array_agg(attempt order by place) from t.batch);
  return v_rows;
end;
$$;
-- Where the jobs are afterwards.
create function pg_temp.states() returns text[] language sql as $$
  select array_agg(b.name || ' ' || coalesce((t.job(b.job_id)).state, 'none') order by b.place) from t.batch as b where b.name <> 'old'
$$;

select is(
  pg_temp.answer('heartbeat'),
  array['third ok running 00:01:00', 'old lost', 'first ok running 00:01:00', 'second ok running 00:01:00', 'of w2 lost', 'never lost gone', 'ended lost'],
  'heartbeat'
);
select is(
  pg_temp.answer('complete'),
  array['third ok completed', 'old lost completed', 'first ok completed', 'second ok completed', 'of w2 lost', 'never lost gone', 'ended already completed'],
  'complete'
);
select is(
  pg_temp.states(),
  array['third completed', 'first completed', 'second completed', 'of w2 running', 'never none', 'ended completed'],
  'complete ends its own'
);
select is(
  pg_temp.answer('fail', ', p_delays => (select array_agg(make_interval(secs => place) order by place) from t.batch)'),
  array['third ok scheduled 00:00:01', 'old lost', 'first ok scheduled 00:00:03', 'second ok scheduled 00:00:04', 'of w2 lost', 'never lost gone', 'ended lost'],
  'fail, with the delay of the attempt that is live'
);
select is(
  pg_temp.states(),
  array['third scheduled', 'first scheduled', 'second scheduled', 'of w2 running', 'never none', 'ended completed'],
  'fail moves its own'
);
select is(
  pg_temp.answer('fail', ', p_retryable => (select array_agg(name <> ''second'' order by place) from t.batch)'),
  array['third ok scheduled 00:00:10', 'old lost', 'first ok scheduled 00:00:10', 'second ok dead 00:00:00', 'of w2 lost', 'never lost gone', 'ended lost'],
  'fail, with the back-off of the task'
);
select is(
  pg_temp.answer('snooze', ', p_jitter => false, p_delays => (select array_agg(make_interval(secs => place) order by place) from t.batch)'),
  array['third ok scheduled 00:00:01', 'old lost', 'first ok scheduled 00:00:03', 'second ok scheduled 00:00:04', 'of w2 lost', 'never lost gone', 'ended lost'],
  'snooze, with the delay of the attempt that is live'
);
-- The jobs have been released once before, so the delay of the second deferral applies; half of the jitter of up to 30 s.
select is(
  pg_temp.answer('snooze'),
  array['third ok scheduled 00:02:15', 'old lost', 'first ok scheduled 00:02:15', 'second ok scheduled 00:02:15', 'of w2 lost', 'never lost gone', 'ended lost'],
  'snooze without delays'
);
select is(
  pg_temp.answer('release'),
  array['third ok ready 00:00:00', 'old lost', 'first ok ready 00:00:00', 'second ok ready 00:00:00', 'of w2 lost', 'never lost gone', 'ended lost'],
  'release'
);
select is(
  (select array_agg(b.name order by c.place)
    from (select c.job_id, row_number() over () as place from trunkline.claim(p_worker => 'w1', p_limit => 3) as c) as c
    join t.batch as b on b.job_id = c.job_id and b.name <> 'old'),
  array['first', 'second', 'third'],
  'jobs that were handed back together keep their order'
);
select is(
  pg_temp.answer('acknowledge_cancel', ', p_reasons => (select array_agg(name order by place) from t.batch)'),
  array['third ok cancelled 00:00:00', 'old lost', 'first ok cancelled 00:00:00', 'second ok cancelled 00:00:00', 'of w2 lost', 'never lost gone', 'ended lost'],
  'acknowledge_cancel'
);
select is(
  (select array_agg(distinct b.name || ': ' || (t.job(b.job_id)).reason) from t.batch as b where b.name in ('first', 'second', 'third')),
  array['first: first', 'second: second', 'third: third'],
  'with the reason of the attempt that is live'
);
select t.prepare() \g /dev/null
select is(
  (select array_agg(b.name || ' ' || p.verdict order by b.place) from t.batch as b, lateral (
    select trunkline.progress(p_worker => 'w1', p_job => b.job_id, p_attempt => b.attempt, p_percent => b.place) as verdict
  ) as p),
  array['third ok', 'old lost', 'first ok', 'second ok', 'of w2 lost', 'never lost', 'ended lost'],
  'progress'
);
-- Errors belong to the live attempt as well, and so does the worker with another version.
select trunkline.register_worker(p_worker => 'w1', p_detail => '{"signatures": {"mail": "old"}}') \g /dev/null
select trunkline.register_worker(p_worker => 'w9', p_detail => '{"signatures": {"mail": "new"}}') \g /dev/null
select is(
  (select array_agg(v order by v) from unnest(pg_temp.answer('hand_over', ', p_errors => (select array_agg(jsonb_build_object(''field'', name) order by place) from t.batch)')) as v),
  array['ended lost', 'first ok scheduled 00:02:15', 'never lost gone', 'of w2 lost', 'old lost', 'second ok scheduled 00:02:15', 'third ok scheduled 00:02:15'],
  'hand_over'
);
select is(
  (select array_agg(distinct (t.job(b.job_id)).reason) from t.batch as b where b.name = 'second'),
  array['field second of the payload does not fit the code of w1; w9 has another version of mail'],
  'with the field of the live attempt'
);
-- A strict completion with a stale attempt names all of them and changes nothing.
select t.prepare() \g /dev/null
select is(
  t.refusal(format($$select trunkline.complete('w1', %L::uuid[], %L::integer[], p_strict => true)$$,
    (select array_agg(job_id order by place) from t.batch), (select array_agg(attempt order by place) from t.batch))) - 'message',
  (select jsonb_build_object('sqlstate', 'TL009', 'code', 'stale_attempt', 'worker', 'w1', 'attempts',
    jsonb_agg(jsonb_build_object('job', job_id, 'attempt', attempt) order by place)) from t.batch where name in ('old', 'of w2', 'never')),
  'a strict completion'
);

select * from finish();
