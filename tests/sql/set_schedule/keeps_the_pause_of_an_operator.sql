-- A program that sets its schedules at every start leaves one paused that an operator paused, unless it says otherwise.
\ir ../helpers/tools.sql
select plan(8);

set session authorization trunkline_operator;
select trunkline.set_schedule(p_schedule => 'daily', p_cron => '@daily', p_task => 'mail') from trunkline.register_task(p_task => 'mail') \g /dev/null
select is((select paused from trunkline.schedules), false, 'a new schedule runs');
select next_run_at as due from trunkline.schedules \gset
select is((select next_run_at from trunkline.set_schedule(p_schedule => 'daily', p_cron => '@daily', p_task => 'mail')), :'due'::timestamptz, 'set again it keeps its due time');
select trunkline.pause_schedule(p_schedule => 'daily') \g /dev/null
select results_eq(
  $$select paused, next_run_at from trunkline.set_schedule(p_schedule => 'daily', p_cron => '@hourly', p_task => 'mail')$$,
  $$values (true, null::timestamptz)$$,
  'a paused one stays paused'
);
select is((select cron from trunkline.schedules), '@hourly', 'while the rest of it changes');
select isnt((select next_run_at from trunkline.set_schedule(p_schedule => 'daily', p_cron => '@hourly', p_task => 'mail', p_paused => false)), null, 'who says so lets it run');
select is((select paused from trunkline.schedules), false, 'and it runs');
select is((select next_run_at from trunkline.set_schedule(p_schedule => 'daily', p_cron => '@hourly', p_task => 'mail', p_paused => true)), null, 'who says so pauses it');
select is((select paused from trunkline.set_schedule(p_schedule => 'other', p_cron => '@hourly', p_task => 'mail', p_paused => true)), true, 'a new one as well');

select * from finish();
