-- TA-36: jobs of a claim whose answer was lost go back at once; what the worker knows, and what others run, stays.
\ir ../helpers/tools.sql
select plan(8);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
set session authorization trunkline_producer;
select trunkline.enqueue_many('[{"task": "mail"}, {"task": "mail"}, {"task": "mail"}]') \g /dev/null
set session authorization trunkline_worker;
select array_agg(c.job_id order by c.job_id) as jobs from trunkline.claim(p_worker => 'w1', p_limit => 2) as c \gset
select c.job_id as other from trunkline.claim(p_worker => 'w2', p_limit => 1) as c \gset
select (:'jobs'::uuid[])[1] as known, (:'jobs'::uuid[])[2] as forgotten \gset

select results_eq(
  format('select job_id, verdict, state from trunkline.release_forgotten(p_worker => %L, p_known => array[%L]::uuid[])', 'w1', :'known'),
  format('values (%L::uuid, %L, %L)', :'forgotten', 'ok', 'ready'),
  'the one it does not know is ready again'
);
select is((t.job(:'known')).state, 'running', 'the one it knows goes on');
select is((t.job(:'other')).state, 'running', 'and so does the one of another worker');
select is((t.job(:'forgotten')).deferrals, 0, 'nobody began it, so it was not put off');
select is_empty(
  format('select * from trunkline.release_forgotten(p_worker => %L, p_known => array[%L]::uuid[])', 'w1', :'known'),
  'a second time there is nothing'
);
select results_eq(
  $$select verdict from trunkline.release_forgotten(p_worker => 'w2', p_known => '{}')$$, $$values ('ok')$$,
  'a worker that knows of nothing gets rid of everything'
);
select throws_ok(
  $$select * from trunkline.release_forgotten(p_worker => 'w1', p_known => null)$$, 'TL028', null,
  'not to know is not the same as to know nothing'
);
select throws_ok(
  $$select * from trunkline.release_forgotten(p_worker => '', p_known => '{}')$$, 'TL007', null, 'a worker has a name'
);

select * from finish();
