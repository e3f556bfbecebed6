-- CP-65: a paused queue gives no job and, if asked to, takes none; everything else goes on.
\ir ../helpers/tools.sql
select plan(13);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_queue => 'post') \g /dev/null
select t.started('mail') as running \gset
set session authorization trunkline_producer;
select job_id as held from trunkline.enqueue(p_task => 'mail') \gset
select job_id as other from trunkline.enqueue(p_task => 'mail', p_queue => 'other') \gset

set session authorization trunkline_operator;
select trunkline.pause_queue(p_queue => 'post', p_reason => 'strike') \g /dev/null
select results_eq($$select paused, paused_reason, paused_at is not null from trunkline.queues where queue = 'post'$$, $$values (true, 'strike', true)$$, 'the view shows it');
set session authorization trunkline_worker;
select results_eq($$select job_id from trunkline.claim(p_worker => 'w1', p_limit => 9)$$, array[:'other']::uuid[], 'only other queues are served');
select is_empty($$select * from trunkline.claim(p_worker => 'w1', p_queues => array['post'])$$, 'also when it is asked for by name');
select is((select verdict from trunkline.complete(p_worker => 'w1', p_jobs => array[:'running']::uuid[], p_attempts => array[1])), 'ok', 'what runs can end');
set session authorization trunkline_producer;
select is((trunkline.enqueue(p_task => 'mail')).created, true, 'new jobs are taken');

set session authorization trunkline_operator;
select trunkline.pause_queue(p_queue => 'post', p_reason => 'closed', p_refuse_enqueue => true) \g /dev/null
set session authorization trunkline_producer;
select is(t.refusal($$select trunkline.enqueue(p_task => 'mail')$$) - 'message' - 'since', '{"sqlstate": "TL010", "code": "queue_paused", "queue": "post", "reason": "closed"}'::jsonb, 'unless the pause refuses them');
select is(t.refusal($$select trunkline.enqueue_many('[{"task": "mail"}]')$$) ->> 'code', 'queue_paused', 'in batches as well');
select is(t.refusal($$select trunkline.pause_queue(p_queue => 'post')$$) ->> 'sqlstate', '42501', 'a producer may not pause');

set session authorization trunkline_operator;
select is(trunkline.resume_queue(p_queue => 'post'), true, 'resuming says that it was paused');
select is(trunkline.resume_queue(p_queue => 'post'), false, 'or that it was not');
select is(t.refusal($$select trunkline.resume_queue(p_queue => 'psot')$$) -> 'known', '["other", "post"]'::jsonb, 'a misspelt queue is refused with the known ones');
select is(t.refusal($$select trunkline.pause_queue(p_queue => '')$$) ->> 'argument', 'p_queue', 'an empty one too');
set session authorization trunkline_worker;
select is((select count(*) from trunkline.claim(p_worker => 'w1', p_limit => 9)), 2::bigint, 'then its jobs are claimed');

select * from finish();
