-- T19: a job that has not started its first attempt by expires_at ends cancelled, by the claim that meets it.
\ir ../helpers/tools.sql
select plan(13);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select job_id as ready from trunkline.enqueue(
  p_task => 'mail', p_unique_key => 'k', p_expires_at => trunkline.clock() + interval '10 minutes'
) \gset
select job_id as later from trunkline.enqueue(
  p_task => 'mail', p_delay => '5 minutes', p_expires_at => trunkline.clock() + interval '10 minutes'
) \gset
select job_id as patient from trunkline.enqueue(p_task => 'mail') \gset

select is(
  (t.job(:'ready')).expires_at - (t.job(:'ready')).created_at < interval '10 minutes 1 second', true, 'the job shows when it expires'
);
select is(
  (select j.expires_at from trunkline.jobs as j where j.job_id = :'ready'), (t.job(:'ready')).expires_at, 'so does the view of jobs'
);
select is(
  (select j.expires_at from trunkline.list_jobs() as j where j.job_id = :'later'), (t.job(:'later')).expires_at, 'and the list'
);

select trunkline_test.move_time('10 minutes 1 second') \g /dev/null
set session authorization trunkline_worker;
select results_eq(
  $$select c.job_id from trunkline.claim(p_worker => 'w1', p_limit => 10) as c$$,
  format('values (%L::uuid)', :'patient'),
  'a claim starts only the job without a deadline'
);
select is((t.job(:'ready')).state, 'cancelled', 'the ready job has ended');
select is((t.job(:'ready')).reason, 'expired', 'with the reason');
select is((t.job(:'ready')).attempt, 0, 'and without an attempt');
select is((t.job(:'later')).state || ' ' || (t.job(:'later')).reason, 'cancelled expired', 'so has the scheduled one');
select isnt((t.job(:'later')).expires_at, null, 'a job that has ended still shows when it expired');
select is((t.event(:'ready')).kind || ' ' || (t.event(:'ready')).to_state, 'cancelled cancelled', 'an event is recorded');
select is(
  (t.event(:'later')).detail - 'expires_at', '{"reason": "expired", "from": "scheduled"}'::jsonb, 'with the reason and the state before'
);
select is((t.event(:'later')).actor, 'trunkline_worker', 'and the session that ended it');

set session authorization trunkline_producer;
select is(
  (trunkline.enqueue(p_task => 'mail', p_unique_key => 'k')).created, true, 'the unique key is free again'
);

select * from finish();
