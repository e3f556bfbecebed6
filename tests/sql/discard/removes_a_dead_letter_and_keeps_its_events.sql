-- CP-49, RF-51: an operator may remove a dead letter for good; what happened to it stays on record.
\ir ../helpers/tools.sql
select plan(8);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select t.dead('mail') as dead \gset
select t.started('mail') as running \gset

set session authorization trunkline_operator;
select is(
  trunkline.discard(p_job => :'dead', p_reason => 'duplicate'),
  row(:'dead', 'discarded', null)::trunkline.changed_job,
  'a dead letter is removed'
);
select is((t.job(:'dead')).state, null, 'the job is gone');
select is(
  (select array_agg(kind order by at) from trunkline.events where job_id = :'dead'),
  array['failed', 'discarded'],
  'its events stay'
);
select is((t.event(:'dead')).detail ->> 'reason', 'duplicate', 'with the reason');
select is((t.event(:'dead')).actor, 'trunkline_operator', 'and who did it');

select is(
  t.refusal(format('select trunkline.discard(p_job => %L)', :'running')),
  jsonb_build_object(
    'sqlstate', 'TL019', 'message', 'the job is not in a state that allows this', 'code', 'wrong_state',
    'job', :'running', 'state', 'running', 'allowed', array['dead']
  ),
  'only dead letters can be discarded, and the refusal says so'
);
select is(
  t.refusal(format('select trunkline.acknowledge(p_job => %L)', :'running')) ->> 'state',
  'running',
  'or acknowledged'
);

set session authorization trunkline_producer;
select is(
  t.refusal(format('select trunkline.discard(p_job => %L)', :'running')) ->> 'sqlstate',
  '42501',
  'a producer may not'
);

select * from finish();
