-- The view jobs shows payload and result of any size, as the function job does.
\ir ../helpers/tools.sql
select plan(3);

set session authorization trunkline_operator;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select job_id as small from trunkline.enqueue(p_task => 'mail', p_payload => '{"to": "a"}') \gset
select job_id as large from trunkline.enqueue(p_task => 'mail', p_payload => jsonb_build_object('to', repeat('b', 5000))) \gset
set session authorization trunkline_worker;
select trunkline.register_worker(p_worker => 'w') \g /dev/null
select trunkline.complete('w', array[c.job_id], array[c.attempt], array[jsonb_build_object('sent', repeat('c', 5000))])
from trunkline.claim(p_worker => 'w') as c \g /dev/null

set session authorization trunkline_reader;
select results_eq(
  'select job_id, payload, result from trunkline.jobs order by job_id',
  'select d.job_id, d.payload, d.result from trunkline.list_jobs() as l, trunkline.job(l.job_id) as d order by d.job_id',
  'as the function job returns them'
);
select is((select length(payload ->> 'to') from trunkline.jobs where job_id = :'large'), 5000, 'a large payload');
select is((select count(*) from trunkline.jobs where length(result ->> 'sent') = 5000), 1::bigint, 'a large result');

select * from finish();
