-- Jobs and workflows of another tenant cannot be followed, and their states and output are not seen.
\ir ../helpers/tools.sql
select plan(9);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'talk') \g /dev/null
set session authorization trunkline_producer;
select job_id as one from trunkline.enqueue(p_task => 'talk', p_tenant => 'acme') \gset
select workflow_id as flow from trunkline.start_workflow('{"name": "w", "tenant": "acme", "steps": [{"name": "a", "task": "talk"}]}') \gset
set session authorization trunkline_worker;
select c.job_id from trunkline.claim('w1') as c \g /dev/null
select trunkline.emit('w1', array[:'one']::uuid[], array[1], array[1], array['secret']) \g /dev/null

set session authorization trunkline_producer;
set trunkline.tenant = 'other';
select is(trunkline.follow(array[:'one', :'flow']::uuid[]), '{}', 'another tenant cannot follow them');
select is_empty(format($$select * from trunkline.live_jobs(array[%L]::uuid[], array[0], array[0])$$, :'one'), 'nor read the job');
select is_empty(format($$select * from trunkline.live_workflows(array[%L]::uuid[])$$, :'flow'), 'nor the workflow');
set trunkline.tenant = 'acme';
select is(cardinality(trunkline.follow(array[:'one', :'flow', gen_random_uuid()]::uuid[])), 2, 'its own tenant follows both, and no unknown id');
select is((select chunks from trunkline.live_jobs(array[:'one']::uuid[], array[0], array[0])), 'secret', 'and reads the output');
select is((select state from trunkline.live_workflows(array[:'flow']::uuid[])), 'queued', 'and the state of the workflow');
select is((t.refusal($$select trunkline.follow(array_fill(gen_random_uuid(), array[1001]))$$)) ->> 'argument', 'p_ids', 'a call takes 1000 ids');
select is((t.refusal($$select trunkline.live_jobs(array_fill(gen_random_uuid(), array[101]), '{}', '{}')$$)) ->> 'argument', 'p_jobs', 'or reads 100 jobs');
set session authorization trunkline_worker;
set trunkline.tenant = 'other';
select is(trunkline.emit('w1', array[:'one']::uuid[], array[1], array[2], array['forged']), array['lost'], 'a worker of another tenant emits nothing');
select * from finish();
