-- CP-32, CP-33, CP-62: lost jobs are due after 0 to 60 whole seconds, drawn for each; the span is a setting.
\ir ../helpers/tools.sql
select plan(7);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_lease => '60 seconds') \g /dev/null
select array_agg(t.started('mail')) as jobs from generate_series(1, 80) \gset
select trunkline_test.move_time('61 seconds') \g /dev/null
select is((select count(*) from trunkline.reclaim()), 80::bigint, 'eighty jobs are lost together');
select ok((select bool_and(t.delay(job) between 0 and 60) from unnest(:'jobs'::uuid[]) as job), 'each is due within a minute');
select ok((select bool_and(t.delay(job) = floor(t.delay(job))) from unnest(:'jobs'::uuid[]) as job), 'after whole seconds');
select ok((select count(distinct t.delay(job)) > 20 from unnest(:'jobs'::uuid[]) as job), 'and not together');
select ok((select bool_and(((t.event(job)).detail ->> 'jitter_seconds')::numeric = t.delay(job)) from unnest(:'jobs'::uuid[]) as job), 'the event tells the jitter');

set session authorization trunkline_operator;
select trunkline.set_setting(p_name => 'reclaim_jitter', p_value => '0 seconds') \g /dev/null
set session authorization trunkline_worker;
select t.started('mail') as exact \gset
select trunkline_test.move_time('61 seconds') \g /dev/null
select trunkline.reclaim() \g /dev/null
select is(t.delay(:'exact'), 0::numeric, 'with no jitter a lost job is due at once');
select ok((select count(*) = 1 from trunkline.claim(p_worker => 'w2', p_tasks => array['mail']) as c where c.attempt = 2), 'and claimed');

select * from finish();
