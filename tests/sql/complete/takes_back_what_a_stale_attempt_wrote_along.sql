-- TA-27, CP-47, RC-19: a strict completion of a lost job is refused, and with it all that its transaction wrote.
\ir ../helpers/tools.sql
select plan(6);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_lease => '60 seconds') \g /dev/null
select t.started('mail') as lost \gset
select trunkline_test.move_time('61 seconds') \g /dev/null
select trunkline.reclaim() \g /dev/null
select t.started('mail') as held \gset
create temporary table artifacts (job_id uuid);

select is(
  t.refusal(format(
    $$with a as (insert into artifacts values (%1$L)) select trunkline.complete(p_worker => 'w1', p_jobs => array[%1$L]::uuid[], p_attempts => array[1], p_strict => true)$$,
    :'lost'
  )),
  jsonb_build_object(
    'sqlstate', 'TL009', 'message', 'the attempt is no longer yours', 'code', 'stale_attempt',
    'worker', 'w1', 'attempts', jsonb_build_array(jsonb_build_object('job', :'lost', 'attempt', 1))
  ),
  'the refusal names the attempt'
);
select is_empty('select * from artifacts', 'the row written along is gone');

select is(
  t.refusal(format(
    $$select trunkline.complete(p_worker => 'w1', p_jobs => array[%L, %L]::uuid[], p_attempts => array[1, 1], p_strict => true)$$,
    :'held', :'lost'
  )) ->> 'code',
  'stale_attempt',
  'one stale attempt refuses the whole strict batch'
);
select is((t.job(:'held')).state, 'running', 'so the other job runs on');

begin;
insert into artifacts values (:'held');
select trunkline.complete(p_worker => 'w1', p_jobs => array[:'held']::uuid[], p_attempts => array[1], p_strict => true) \g /dev/null
commit;
select is((t.job(:'held')).state, 'completed', 'the owner completes');
select is((select job_id from artifacts), :'held'::uuid, 'together with what it wrote');

select * from finish();
