-- CP-45, TA-22: a large result is kept apart and returned whole; one over the limit is refused and the job runs on.
\ir ../helpers/tools.sql
\ir ../../support/internals/internals.sql
select plan(7);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select t.started('mail') as large \gset
select t.started('mail') as small \gset
select t.started('mail') as huge \gset

select is(
  (select array_agg(verdict) from trunkline.complete(
    p_worker => 'w1', p_jobs => array[:'large', :'small']::uuid[], p_attempts => array[1, 1],
    p_results => array[jsonb_build_object('text', repeat('x', 5000)), '{"n": 1}']
  )),
  array['ok', 'ok'],
  'a large and a small result in one call'
);
select is(length((t.job(:'large')).result ->> 'text'), 5000, 'the large one is returned whole');
select is((t.job(:'small')).result, '{"n": 1}'::jsonb, 'and the small one');
select is(
  t.refusal(format(
    $$select trunkline.complete(p_worker => 'w1', p_jobs => array[%L]::uuid[], p_attempts => array[1],
      p_results => array[jsonb_build_object('text', repeat('x', 300000))])$$, :'huge'
  )) ->> 'code',
  'payload_too_large',
  'a result over the limit is refused'
);
select is((t.job(:'huge')).state, 'running', 'its job runs on, to report something smaller');

select is((select count(*) from t.bodies() where kind = 'result'), 1::bigint, 'one body is kept apart');
select is((select array_agg(result) from t.finished() where result is not null), array['{"n": 1}'::jsonb], 'the other one moved with its job');

select * from finish();
