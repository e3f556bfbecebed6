-- The schedule of a renamed task keeps its due time and its pause; schedules with names of their own are left alone.
\ir ../helpers/tools.sql
select plan(8);

set session authorization trunkline_operator;
select trunkline.register_task(p_task => t.task) from (values ('old'), ('new'), ('other')) as t (task) \g /dev/null
select trunkline.set_schedule(p_schedule => s.schedule, p_cron => '@hourly', p_task => s.task)
from (values ('old', 'old'), ('nightly', 'old'), ('other', 'other')) as s (schedule, task) \g /dev/null
select next_run_at as due from trunkline.schedules where schedule = 'old' \gset
select trunkline_test.move_time('3 hours') \g /dev/null

select is(trunkline.adopt_schedule(p_task => 'new', p_alias => 'old'), true, 'there is one');
select results_eq(
  'select schedule, task from trunkline.schedules order by schedule',
  $$values ('new', 'new'), ('nightly', 'old'), ('other', 'other')$$,
  'it has the new name; others keep theirs'
);
select is((select next_run_at from trunkline.schedules where schedule = 'new'), :'due'::timestamptz, 'a due time that passed meanwhile is not lost');
select is(trunkline.adopt_schedule(p_task => 'new', p_alias => 'old'), false, 'the second time there is none');

-- An old worker that starts during the deploy sets it again.
select trunkline.set_schedule(p_schedule => 'old', p_cron => '@hourly', p_task => 'old') \g /dev/null
select is(trunkline.adopt_schedule(p_task => 'new', p_alias => 'old'), true, 'it is found again');
select is((select array_agg(schedule order by schedule) from trunkline.schedules where task = 'new'), array['new'], 'and leaves one');
select is(trunkline.adopt_schedule(p_task => 'new', p_alias => 'other'), true, 'whatever it is called');
select is(t.refusal($$select trunkline.adopt_schedule(p_task => 'unknown', p_alias => 'other')$$) ->> 'code', 'unknown_task', 'the task must be known');

select * from finish();
