-- A worker reports how far it is; the percentage never falls within an attempt and starts anew with the next.
\ir ../helpers/tools.sql
select plan(9);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_backoff => '{"base": 0}') \g /dev/null
select t.started('mail') as job \gset
select is(trunkline.progress(p_worker => 'w1', p_job => :'job', p_attempt => 1, p_percent => 40, p_message => 'page 4', p_phase => 'render') = 'ok', true, 'the holder may report');
select results_eq(format('select (j).progress, (j).message, (j).phase from t.job(%L) as j', :'job'), $$values (40, 'page 4', 'render')$$, 'it is shown');
select trunkline.progress(p_worker => 'w1', p_job => :'job', p_attempt => 1, p_percent => 30, p_message => 'page 3') as answer \gset
select results_eq(format('select (j).progress, (j).message, (j).phase from t.job(%L) as j', :'job'), $$values (40, 'page 3', 'render')$$, 'a lower percentage is left out, a message is not');
select trunkline.progress(p_worker => 'w1', p_job => :'job', p_attempt => 1) as answer \gset
select is((t.job(:'job')).progress, 40, 'saying nothing changes nothing');
select is(t.refusal(format($$select trunkline.progress(p_worker => 'w1', p_job => %L, p_attempt => 1, p_percent => 101)$$, :'job')) ->> 'maximum', '100', 'above a hundred is refused');
select is(t.refusal(format($$select trunkline.progress(p_worker => 'w1', p_job => %L, p_attempt => 1, p_percent => -1)$$, :'job')) ->> 'minimum', '0', 'below zero is refused');
select is(trunkline.progress(p_worker => 'w2', p_job => :'job', p_attempt => 1, p_percent => 99), 'lost', 'another worker is told that it is lost');
select trunkline.fail(p_worker => 'w1', p_jobs => array[:'job']::uuid[], p_attempts => array[1]) \g /dev/null
select trunkline.claim(p_worker => 'w1') \g /dev/null
select is((t.job(:'job')).progress, null, 'a new attempt starts anew');
select is((t.job(:'job')).lease_expires_at > trunkline.clock(), true, 'under its own lease');

select * from finish();
