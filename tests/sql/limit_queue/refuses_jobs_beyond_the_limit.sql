-- CP-25: a full queue refuses new jobs with a refusal of its own, in batches too, until there is room.
\ir ../helpers/tools.sql
select plan(11);

set session authorization trunkline_operator;
select trunkline.register_task(p_task => 'mail', p_queue => 'post') \g /dev/null
select trunkline.limit_queue(p_queue => 'post', p_max_depth => 2) \g /dev/null
set session authorization trunkline_producer;
select is((trunkline.enqueue(p_task => 'mail')).created, true, 'there is room');
select is(
  t.refusal($$select trunkline.enqueue_many('[{"task": "mail"}, {"task": "mail"}]')$$) - 'message',
  '{"sqlstate": "TL011", "code": "queue_full", "queue": "post", "waiting": 1, "asked": 2, "max_depth": 2}'::jsonb,
  'not for two more, says the refusal'
);
select is((select count(*) from trunkline.jobs), 1::bigint, 'and the batch left nothing');
select is((trunkline.enqueue(p_task => 'mail', p_unique_key => 'k')).created, true, 'but for one');
select is(t.refusal($$select trunkline.enqueue(p_task => 'mail')$$) ->> 'code', 'queue_full', 'then it is full');
select is((trunkline.enqueue(p_task => 'mail', p_unique_key => 'k')).created, false, 'a duplicate needs no room');
select is((trunkline.enqueue(p_task => 'mail', p_queue => 'other')).created, true, 'other queues are open');

set session authorization trunkline_worker;
select trunkline.claim(p_worker => 'w1', p_queues => array['post']) \g /dev/null
set session authorization trunkline_producer;
select is((trunkline.enqueue(p_task => 'mail')).created, true, 'what was claimed makes room');

set session authorization trunkline_operator;
select is((select max_depth || ' ' || ready || ' ' || running from trunkline.queues where queue = 'post'), '2 2 1', 'the view of queues shows it');
select trunkline.limit_queue(p_queue => 'post', p_max_depth => null) \g /dev/null
select is((trunkline.enqueue(p_task => 'mail')).created, true, 'a limit can be lifted');
select is(t.refusal($$select trunkline.limit_queue(p_queue => 'post', p_max_depth => 0)$$) ->> 'code', 'limit_out_of_range', 'zero is no limit');

select * from finish();
