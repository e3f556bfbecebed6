-- EX-14: outside a profile a unique key counts for one task of a tenant; each task has its own job, and frees only its own key.
\ir ../helpers/tools.sql
select plan(16);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail', p_max_attempts => 1) \g /dev/null
select trunkline.register_task(p_task => 'fax') \g /dev/null
select trunkline.register_task(p_task => 'page', p_unique_until => 'claim') \g /dev/null

select job_id as mail from trunkline.enqueue(p_task => 'mail', p_unique_key => 'k') \gset
select job_id as fax, created from trunkline.enqueue(p_task => 'fax', p_unique_key => 'k', p_priority => 7) \gset
select is(:'created'::boolean, true, 'another task with the same key gets its own job');
select is((t.job(:'fax')).task, 'fax', 'of its own task');
select is((t.job(:'mail')).priority, 0, 'and does not raise the priority of the other one');
select is((trunkline.enqueue(p_task => 'mail', p_unique_key => 'k', p_tenant => 'acme')).created, true, 'a tenant has its own keys');
select is((trunkline.enqueue(p_task => 'mail', p_unique_key => 'k', p_priority => 3)).job_id, :'mail'::uuid, 'a duplicate gets the job of its task');
select is((t.job(:'mail')).priority, 3, 'and raises its priority');
select is((t.job(:'fax')).priority, 7, 'and no other');

select results_eq(
  $$select created from trunkline.enqueue_many('[
    {"task": "page", "unique_key": "k"}, {"task": "fax", "unique_key": "k"}, {"task": "mail", "unique_key": "k"}, {"task": "page", "unique_key": "k"}
  ]')$$,
  array[true, false, false, false], 'the same holds within a batch'
);

set session authorization trunkline_worker;
select trunkline.claim(p_worker => 'w1', p_tasks => array['page']) \g /dev/null
select trunkline.fail(p_worker => 'w1', p_jobs => array[job_id], p_attempts => array[attempt])
from trunkline.claim(p_worker => 'w1', p_tasks => array['mail']) where job_id = :'mail' \g /dev/null
set session authorization trunkline_producer;
select is((trunkline.enqueue(p_task => 'page', p_unique_key => 'k')).created, true, 'a claim frees the key of a task that says so');
select is((trunkline.enqueue(p_task => 'fax', p_unique_key => 'k')).created, false, 'but not that of another task');

select is((t.job(:'mail')).state, 'dead', 'a dead job');
set session authorization trunkline_operator;
select is((trunkline.retry(p_job => :'mail')).state, 'ready', 'can be replayed while another task holds its key');
select is((trunkline.enqueue(p_task => 'mail', p_unique_key => 'k')).job_id, :'mail'::uuid, 'and holds it for its own task again');
select trunkline.cancel(p_job => :'fax') \g /dev/null
select is((trunkline.enqueue(p_task => 'mail', p_unique_key => 'k')).created, false, 'the end of another task''s job frees nothing here');
select job_id as again, created from trunkline.retry(p_job => :'fax') \gset
select is(:'created'::boolean, true, 'a retry of an ended job is a new one');
select is((trunkline.enqueue(p_task => 'fax', p_unique_key => 'k')).job_id, :'again'::uuid, 'that holds the key of its task');

select * from finish();
