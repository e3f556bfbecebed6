-- RF-51, CP-49: a dead letter stays until somebody acknowledged it, and thirty days longer.
\ir ../helpers/tools.sql
select plan(8);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select t.dead('mail') as seen \gset
select t.dead('mail') as unseen \gset

select trunkline_test.move_time('400 days') \g /dev/null
select trunkline.maintain_partitions() \g /dev/null
select is((t.job(:'seen')).state, 'dead', 'age alone removes no dead letter');

set session authorization trunkline_operator;
select is(
  trunkline.acknowledge(p_job => :'seen'),
  row(:'seen', 'acknowledged', 'dead')::trunkline.changed_job,
  'an operator acknowledges one'
);
select is(
  (select acknowledged_by from trunkline.dead_letters where job_id = :'seen'),
  'trunkline_operator',
  'who saw it is kept'
);
select is((t.event(:'seen')).kind, 'acknowledged', 'the acknowledgement is an event');
select acknowledged_at as first_time from trunkline.dead_letters where job_id = :'seen' \gset

select trunkline_test.move_time('29 days 23 hours') \g /dev/null
select trunkline.acknowledge(p_job => :'seen') \g /dev/null
select is(
  (select acknowledged_at from trunkline.dead_letters where job_id = :'seen'),
  :'first_time'::timestamptz,
  'a second acknowledgement does not start the time anew'
);
select trunkline.maintain_partitions() \g /dev/null
select is((t.job(:'seen')).state, 'dead', 'it is kept for thirty days after that');

select trunkline_test.move_time('2 hours') \g /dev/null
select trunkline.maintain_partitions() \g /dev/null
select is((t.job(:'seen')).state, null, 'and removed then');
select is((t.job(:'unseen')).state, 'dead', 'one that nobody saw stays');

select * from finish();
