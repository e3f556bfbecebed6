-- Events: the first of a name wins, an event may come before the wait, and each is delivered to the jobs that wait for it.
\ir ../helpers/tools.sql
select plan(25);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select t.started('mail') as one \gset
select (trunkline.begin_wait('w1', :'one', 1, 1, 'event', 'approved', '#1')).outcome as o \gset
select is(:'o'::text, 'wait', 'no event yet');
select is(v.state, 'blocked', 'without a timeout the job is blocked') from trunkline.suspend('w1', array[:'one']::uuid[], array[1]) as v;
set session authorization trunkline_producer;
select is((t.job(:'one')).state, 'blocked', 'as the job shows');
select is(outcome || ' ' || resumed, 'stored 0', 'an event of another name is stored') from trunkline.send_event('other', '1', :'one');
select is((t.job(:'one')).state, 'blocked', 'and resumes nothing');
select is(outcome || ' ' || resumed, 'delivered 1', 'the event is delivered') from trunkline.send_event('approved', '{"by": "ann"}', :'one', p_event_id => 'e1');
select is((t.job(:'one')).state || ' ' || (t.job(:'one')).reason, 'ready resumed', 'the job is ready');
select is((t.event(:'one')).kind || ' ' || (t.event(:'one')).detail, 'resumed {"cause": "event approved"}', 'with an event in its history');
select is(outcome, 'already', 'the same event again') from trunkline.send_event('approved', '{"by": "ann"}', :'one', p_event_id => 'e1');
select is(outcome, 'already', 'a second event of the name') from trunkline.send_event('approved', '{"by": "eve"}', :'one', p_event_id => 'e2');
select is(
  (t.refusal(format($$select trunkline.send_event('approved', '{"by": "eve"}', %L, p_event_id => 'e1')$$, :'one'))) ->> 'code',
  'event_mismatch', 'the same event id with another payload is refused'
);
set session authorization trunkline_worker;
select job_id from trunkline.claim('w2') \g /dev/null
select is((w).outcome || (w).result, 'over{"event": {"by": "ann"}}', 'the handler receives the first payload')
from trunkline.begin_wait('w2', :'one', 2, 1, 'event', 'approved', '#1') as w;
select is((w).outcome || (w).result, 'over{"event": 1}', 'an event sent before the wait is received at once')
from trunkline.begin_wait('w2', :'one', 2, 2, 'event', 'other', '#1') as w;
select (trunkline.begin_wait('w2', :'one', 2, 3, 'event', 'paid', '#1', 'order 7', '2 days')).outcome as o \gset
select is(v.state, 'scheduled', 'with a timeout the job is scheduled') from trunkline.suspend('w2', array[:'one']::uuid[], array[2]) as v;
set session authorization trunkline_producer;
select is(outcome, 'stored', 'the event of a key in another tenant is stored') from trunkline.send_event('paid', p_key => 'order 7', p_tenant => 'acme');
select is(outcome || resumed, 'delivered1', 'one of the own tenant is delivered') from trunkline.send_event('paid', '5', p_key => 'order 7');
set session authorization trunkline_worker;
select job_id from trunkline.claim('w3') \g /dev/null
select is((w).outcome || (w).result, 'over{"event": 5}', 'with its payload')
from trunkline.begin_wait('w3', :'one', 3, 3, 'event', 'paid', '#1', 'order 7', '2 days') as w;
select (trunkline.begin_wait('w3', :'one', 3, 4, 'event', 'late', '#1', null, '1 hour')).outcome as o \gset
select v.state from trunkline.suspend('w3', array[:'one']::uuid[], array[3]) as v \g /dev/null
select trunkline_test.move_time('1 hour');
select job_id from trunkline.claim('w4') \g /dev/null
select is((w).outcome, 'timeout', 'after the timeout the wait is over')
from trunkline.begin_wait('w4', :'one', 4, 4, 'event', 'late', '#1', null, '1 hour') as w;
select ok((result ->> 'timeout') is not null, 'and recorded as such') from trunkline.recorded_steps('w4', :'one', 4) where name = 'late';
select (trunkline.begin_wait('w4', :'one', 4, 5, 'event', 'soon', '#1')).outcome as o \gset
set session authorization trunkline_producer;
select is(outcome, 'stored', 'an event that comes before the suspension') from trunkline.send_event('soon', '1', :'one');
set session authorization trunkline_worker;
select is(v.state, 'ready', 'makes the job ready at once') from trunkline.suspend('w4', array[:'one']::uuid[], array[4]) as v;
select job_id from trunkline.claim('w5') \g /dev/null
select v.state from trunkline.complete('w5', array[:'one']::uuid[], array[5]) as v \g /dev/null
set session authorization trunkline_producer;
select is(
  (t.refusal(format($$select trunkline.send_event('x', '1', %L)$$, :'one'))) - array['message', 'sqlstate', 'job'],
  '{"code": "wrong_state", "state": "completed", "allowed": ["ready", "scheduled", "blocked", "running"]}'::jsonb,
  'a job that has ended takes no event'
);
select is((t.refusal($$select trunkline.send_event('x', '1', '00000000-0000-7000-8000-000000000000')$$)) ->> 'code', 'unknown_job', 'nor does an unknown one');
select is((t.refusal($$select trunkline.send_event('x', '1')$$)) ->> 'argument', 'p_key', 'a job or a key is needed');
select is(
  (t.refusal($$select trunkline.send_event('x', to_jsonb((select string_agg(md5(n::text), '') from generate_series(1, 5000) as n)), p_key => 'k')$$)) ->> 'code',
  'event_too_large', 'at most 64 KB'
);
select * from finish();
