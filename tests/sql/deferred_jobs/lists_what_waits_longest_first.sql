-- Jobs that were deferred or set aside, the one that has waited longest first, up to a number.
\ir ../helpers/tools.sql
\ir ../../support/internals/frozen.sql
select plan(9);

set session authorization trunkline_operator;
select trunkline.set_limit('api', '{"tokens_per_minute": 100}') \g /dev/null
select trunkline.register_task(p_task => 'mail'), trunkline.register_task(p_task => 'ask', p_limits => array['api']) \g /dev/null
create function pg_temp.deferred(p_tenant text) returns uuid language plpgsql as $$
declare
  v_job uuid;
begin
  v_job := (trunkline.enqueue(p_task => 'mail', p_tenant => p_tenant, p_priority => 49)).job_id;
  perform trunkline.claim(p_worker => 'w1');
  perform trunkline.snooze(p_worker => 'w1', p_jobs => array[v_job], p_attempts => array[1], p_delays => array[interval '1 day']);
  perform trunkline_test.move_time('1 minute');
  return v_job;
end;
$$;
create function pg_temp.listed(p_limit integer default 100) returns uuid[] language sql as $$
  select array_agg(d.job_id order by d.place)
  from (select d.job_id, row_number() over () as place from trunkline.deferred_jobs(p_limit => p_limit) as d) as d
$$;
select job_id as ready from trunkline.enqueue(p_task => 'mail') \gset
select trunkline.enqueue(p_task => 'mail', p_delay => '1 hour') \g /dev/null
set session authorization trunkline_installer;
select is(pg_temp.listed(), null, 'nothing was deferred yet');
select pg_temp.deferred('b') as first \gset
-- Set aside by a limit that was lowered below its cost.
select job_id as aside from trunkline.enqueue(p_task => 'ask', p_cost => '{"tokens": 100}', p_tenant => 'a') \gset
select trunkline.set_limit('api', '{"tokens_per_minute": 50}') \g /dev/null
select is((t.job(:'aside')).state, 'blocked', 'a job is set aside');
select trunkline_test.move_time('1 minute') \g /dev/null
select pg_temp.deferred('a') as third \gset
select pg_temp.deferred('b') as fourth \gset
select is(pg_temp.listed(), array[:'first', :'aside', :'third', :'fourth']::uuid[], 'those deferred and those set aside, in the order of their times');
select is(pg_temp.listed(4), array[:'first', :'aside', :'third', :'fourth']::uuid[], 'as many as there are');
select is(pg_temp.listed(3), array[:'first', :'aside', :'third']::uuid[], 'no more than asked for');
select is(pg_temp.listed(1), array[:'first']::uuid[], 'the one that waits longest');
select results_eq(
  'select to_jsonb(d) from trunkline.deferred_jobs() as d order by d.job_id',
  $$select to_jsonb(j) from trunkline.list_jobs() as j where j.deferrals > 0 or j.state = 'blocked' order by j.job_id$$,
  'with the columns of list_jobs'
);
set trunkline.tenant = 'a';
select is(pg_temp.listed(), array[:'aside', :'third']::uuid[], 'a tenant sees its own');
select is(pg_temp.listed(2), array[:'aside']::uuid[], 'among the first of all');
reset trunkline.tenant;

select * from finish();
