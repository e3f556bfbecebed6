-- CP-27, TA-14: a claim serves the queues in the order given and only the tasks given.
\ir ../helpers/tools.sql
select plan(7);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail', p_queue => 'slow') \g /dev/null
select trunkline.register_task(p_task => 'page', p_queue => 'fast') \g /dev/null
select trunkline.enqueue(p_task => 'mail', p_priority => 40) \g /dev/null
select trunkline.enqueue(p_task => 'page') \g /dev/null
select trunkline.enqueue(p_task => 'page', p_queue => 'slow') \g /dev/null

set session authorization trunkline_worker;
select is_empty($$select * from trunkline.claim(p_worker => 'w1', p_queues => array['other'], p_limit => 9)$$, 'a queue nobody uses has nothing');
select is_empty($$select * from trunkline.claim(p_worker => 'w1', p_queues => '{}', p_limit => 9)$$, 'no queue at all has nothing');
select is_empty($$select * from trunkline.claim(p_worker => 'w1', p_tasks => array['other'], p_limit => 9)$$, 'a task nobody enqueued has nothing');
select results_eq(
  $$select queue, task from trunkline.claim(p_worker => 'w1', p_queues => array['slow'], p_tasks => array['page'], p_limit => 9)$$,
  $$values ('slow', 'page')$$,
  'queue and task both must fit'
);
select results_eq(
  $$select queue, task from trunkline.claim(p_worker => 'w1', p_queues => array['fast', 'slow'], p_limit => 9)$$,
  $$values ('fast', 'page'), ('slow', 'mail')$$,
  'the first queue goes first whatever the priorities in the second'
);
set session authorization trunkline_producer;
select trunkline.enqueue(p_task => 'mail') \g /dev/null
select trunkline.enqueue(p_task => 'page') \g /dev/null
set session authorization trunkline_worker;
select results_eq(
  $$select queue from trunkline.claim(p_worker => 'w1', p_queues => array['slow', 'fast'], p_limit => 1)$$,
  $$values ('slow')$$,
  'also when one job is asked for'
);
select is((select count(*) from trunkline.claim(p_worker => 'w1', p_limit => 9)), 1::bigint, 'no queue named means all');

select * from finish();
