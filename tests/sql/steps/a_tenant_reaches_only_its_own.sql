-- I8: events and steps of another tenant are not seen and not reached.
\ir ../helpers/tools.sql
select plan(7);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
set session authorization trunkline_producer;
select job_id as one from trunkline.enqueue(p_task => 'mail', p_tenant => 'acme') \gset
set session authorization trunkline_worker;
select job_id from trunkline.claim('w1') \g /dev/null
select (trunkline.begin_wait('w1', :'one', 1, 1, 'event', 'go', '#1', 'order')).outcome as o \gset
select v.state from trunkline.suspend('w1', array[:'one']::uuid[], array[1]) as v \g /dev/null
set session authorization trunkline_producer;
set trunkline.tenant = 'other';
select is((t.refusal(format($$select trunkline.send_event('go', '1', %L)$$, :'one'))) ->> 'code', 'unknown_job', 'not by its id');
select is((t.refusal(format($$select * from trunkline.job_steps(%L)$$, :'one'))) ->> 'code', 'unknown_job', 'nor its steps');
select is(outcome, 'stored', 'not by a key') from trunkline.send_event('go', '1', p_key => 'order');
select is((t.refusal($$select trunkline.send_event('go', '1', p_key => 'order', p_tenant => 'acme')$$)) ->> 'code', 'tenant_denied', 'not by naming the tenant');
set trunkline.tenant = 'acme';
select is(outcome, 'delivered', 'the tenant itself reaches it') from trunkline.send_event('go', '1', p_key => 'order');
set session authorization trunkline_worker;
set trunkline.tenant = 'other';
select is((t.refusal(format($$select * from trunkline.recorded_steps('w1', %L, 1)$$, :'one'))) ->> 'code', 'stale_attempt', 'nor does a worker of another tenant');
select is(trunkline.record_steps('w1', array[:'one']::uuid[], array[1], array[1], array['a'], array['#1'], array[null::bigint], array['1']::jsonb[]), array['lost'], 'record its steps');
select * from finish();
