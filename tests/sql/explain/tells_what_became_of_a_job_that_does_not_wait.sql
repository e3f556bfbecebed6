-- EX-36: explain says of a running job who runs it, of an ended one how it ended, and refuses what is not there.
\ir ../helpers/tools.sql
select plan(7);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_backoff => '{"base": 60}') \g /dev/null
select t.dead('mail') as dead \gset
select t.started('mail') as retrying \gset
select trunkline.fail(p_worker => 'w1', p_jobs => array[:'retrying']::uuid[], p_attempts => array[1]) \g /dev/null
select t.started('mail') as running \gset

set session authorization trunkline_reader;
select results_eq(
  format('select reason, until, detail ->> %L, (detail ->> %L)::integer from trunkline.explain(p_job => %L)', 'worker', 'attempt', :'running'),
  format($$values ('running', %L::timestamptz, 'w1', 1)$$, (t.job(:'running')).lease_expires_at),
  'a running job, with its worker and the end of its lease'
);
select is((select reason || ': ' || (detail ->> 'reason') from trunkline.explain(p_job => :'dead')), 'dead: not_retryable', 'a dead one, with the reason');
select is((select detail -> 'last_error' ->> 'message' from trunkline.explain(p_job => :'dead')), 'no', 'and the last error');
select is(
  (select detail from trunkline.explain(p_job => :'retrying') where reason = 'scheduled'),
  '{"reason": "retry", "failures": 1, "deferrals": 0}'::jsonb,
  'one that waits for its next attempt'
);
select is(
  t.refusal($$select trunkline.explain(p_job => '00000000-0000-7000-8000-000000000000')$$) ->> 'code',
  'unknown_job',
  'an unknown job is refused'
);
set trunkline.tenant = 'acme';
select is(t.refusal(format('select trunkline.explain(p_job => %L)', :'dead')) ->> 'code', 'unknown_job', 'so is a job of somebody else');
set session authorization trunkline_worker;
select is(t.refusal(format('select trunkline.explain(p_job => %L)', :'dead')) ->> 'sqlstate', '42501', 'a worker may not ask');

select * from finish();
