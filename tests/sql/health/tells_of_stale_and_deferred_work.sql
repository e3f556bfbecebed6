-- CP-44, RC-35, RC-38: health counts jobs silent for twice their lease, and jobs deferred too often or for too long.
\ir ../helpers/tools.sql
select plan(9);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_lease => '60 seconds') \g /dev/null
select t.started('mail') as silent \gset
select trunkline_test.move_time('119 seconds') \g /dev/null
select is((select ok from trunkline.health() where "check" = 'stale work'), true, 'a job silent for less than twice its lease may still be taken back in time');
select trunkline_test.move_time('2 seconds') \g /dev/null
select is((select detail from trunkline.health() where "check" = 'stale work' and not ok), '{"jobs": 1}'::jsonb, 'after that it is an alarm');
select trunkline.reclaim() \g /dev/null
select is((select ok from trunkline.health() where "check" = 'stale work'), true, 'reclaim mends it');

-- Its retry must not come due among the claims below, however slowly they run.
set session authorization trunkline_operator;
select trunkline.cancel(p_job => :'silent', p_reason => 'seen enough') \g /dev/null
select trunkline.set_setting(p_name => 'max_deferrals', p_value => '2') \g /dev/null
set session authorization trunkline_worker;
select t.started('mail') as often \gset
select trunkline.snooze(p_worker => 'w1', p_jobs => array[:'often']::uuid[], p_attempts => array[1], p_delays => array[interval '0']) \g /dev/null
select trunkline.snooze(p_worker => 'w1', p_jobs => array[job_id], p_attempts => array[attempt], p_delays => array[interval '0']) from trunkline.claim(p_worker => 'w1') \g /dev/null
select is((select ok from trunkline.health() where "check" = 'deferred work'), true, 'within the bounds a deferred job is none');
select trunkline.snooze(p_worker => 'w1', p_jobs => array[job_id], p_attempts => array[attempt], p_delays => array[interval '0']) from trunkline.claim(p_worker => 'w1') \g /dev/null
select is((select detail from trunkline.health() where "check" = 'deferred work' and not ok), '{"jobs": 1}'::jsonb, 'beyond it is an alarm');
select is((t.event(:'often')).detail ->> 'over_bounds', 'true', 'the event says so too');
select is((t.job(:'often')).state, 'scheduled', 'but the job lives on');

set session authorization trunkline_operator;
select trunkline.set_setting(p_name => 'max_deferrals', p_value => null) \g /dev/null
select is((select ok from trunkline.health() where "check" = 'deferred work'), true, 'the bound is a setting, in force at once');
select trunkline_test.move_time('25 hours') \g /dev/null
select is((select ok from trunkline.health() where "check" = 'deferred work'), false, 'a job deferred for longer than a day is an alarm as well');

select * from finish();
