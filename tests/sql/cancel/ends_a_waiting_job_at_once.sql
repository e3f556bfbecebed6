-- CP-50, EX-35: a waiting job, due or not, is cancelled at once and its unique key is free.
\ir ../helpers/tools.sql
select plan(8);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select job_id as ready from trunkline.enqueue(p_task => 'mail', p_unique_key => 'k') \gset
select job_id as later from trunkline.enqueue(p_task => 'mail', p_delay => '1 hour') \gset

select is(
  trunkline.cancel(p_job => :'ready', p_reason => 'mistake'),
  row(:'ready', 'cancelled', 'cancelled')::trunkline.changed_job,
  'a ready job is cancelled, and the answer says it took effect'
);
select is((t.job(:'ready')).state, 'cancelled', 'it is in its final state');
select is((t.job(:'ready')).reason, 'mistake', 'with the reason');
select isnt((t.job(:'ready')).finished_at, null, 'and the time');
select is(
  (trunkline.cancel(p_job => :'later')).outcome,
  'cancelled',
  'a scheduled job is cancelled as well'
);
select is((t.event(:'later')).detail ->> 'from', 'scheduled', 'the event tells from which state');
select is(
  (trunkline.enqueue(p_task => 'mail', p_unique_key => 'k')).created,
  true,
  'the unique key is free again'
);

set session authorization trunkline_worker;
select is(
  (select count(*) from trunkline.claim(p_worker => 'w1', p_limit => 10)),
  1::bigint,
  'no cancelled job is claimed'
);

select * from finish();
