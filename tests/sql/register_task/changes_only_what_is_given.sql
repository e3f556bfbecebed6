-- CP-62, RC-05, RC-06: a policy is a row: registering again changes what is given, keeps the rest, and holds for the next claim.
\ir ../helpers/tools.sql
select plan(7);

set session authorization trunkline_worker;
select is(trunkline.register_task(p_task => 'mail'), 'mail', 'a new task');
select results_eq(
  $$select queue, profile, lease, hard_limit, max_attempts::integer, priority::integer, backoff_base, backoff_factor, backoff_cap, backoff_jitter,
      lost_backoff, reclaim_on_worker_death, crash_limit::integer, unique_until, dead_when_deferred, audit from trunkline.tasks$$,
  $$values ('default', 'default', interval '300 seconds', interval '1200 seconds', 4, 0, interval '10 seconds', 2::double precision, interval '1 hour',
      0.2::double precision, false, true, null::integer, 'end', false, false)$$,
  'has the defaults'
);
select trunkline.register_task(
  p_task => 'mail', p_queue => 'post', p_lease => '60 seconds', p_hard_limit => '90 seconds', p_max_attempts => 7, p_backoff => '{"base": 1.5, "cap": 9}',
  p_audit => true, p_priority => 3, p_unique_until => 'claim', p_crash_limit => 2, p_reclaim_on_worker_death => false, p_lost_backoff => true,
  p_dead_when_deferred => true, p_profile => 'letters'
) \g /dev/null
select trunkline.register_task(p_task => 'mail', p_lease => '80 seconds') \g /dev/null
select trunkline.register_task(p_task => 'mail', p_audit => true) \g /dev/null
select results_eq(
  $$select queue, profile, lease, hard_limit, max_attempts::integer, priority::integer, backoff_base, backoff_factor, backoff_cap, backoff_jitter,
      lost_backoff, reclaim_on_worker_death, crash_limit::integer, unique_until, dead_when_deferred, audit from trunkline.tasks$$,
  $$values ('post', 'letters', interval '80 seconds', interval '90 seconds', 7, 3, interval '1.5 seconds', 2::double precision, interval '9 seconds',
      0.2::double precision, true, false, 2, 'claim', true, true)$$,
  'what was given once is kept when the next registration says nothing of it'
);
set session authorization trunkline_producer;
select job_id as job from trunkline.enqueue(p_task => 'mail') \gset
select trunkline.register_task(p_task => 'mail', p_lease => '20 seconds', p_max_attempts => 2) \g /dev/null
set session authorization trunkline_worker;
select lease_expires_at - claimed_at as lease, hard_deadline - claimed_at as hard_limit, max_attempts from trunkline.claim(p_worker => 'w1') \gset
select is(:'lease'::interval, interval '20 seconds', 'a changed lease holds for the next claim');
select is(:'hard_limit'::interval, interval '90 seconds', 'beside the hard limit that was not named');
select is(:max_attempts, 7, 'the attempts of a job are those of the day it came');
set session authorization trunkline_reader;
select is(t.refusal($$select trunkline.register_task(p_task => 'fax')$$) ->> 'sqlstate', '42501', 'a reader registers nothing');

select * from finish();
