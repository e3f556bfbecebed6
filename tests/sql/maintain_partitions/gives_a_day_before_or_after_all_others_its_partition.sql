-- RF-50: after the clock has stepped back on the day of installation, or ahead and back again, the defaults are emptied.
\ir ../helpers/tools.sql
select plan(12);

create function t.used() returns boolean language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select not h.ok from trunkline.health() as h where h."check" = 'default partitions';
end;
create function t.ended() returns uuid language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_job uuid := t.started('mail');
begin
  perform trunkline.complete(
    p_worker => 'w1', p_jobs => array[v_job], p_attempts => array[1], p_results => array[jsonb_build_object('text', repeat('x', 5000))]
  );
  perform t.dead('mail');
  return v_job;
end;
$$;

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select trunkline.maintain_partitions() \g /dev/null
select trunkline_test.move_time('-1 day') \g /dev/null
select t.ended() as earlier \gset
select is(
  (select detail from trunkline.health() where "check" = 'default partitions'),
  '{"finished": true, "bodies": true, "recorded_steps": false, "events": true}'::jsonb,
  'a day earlier there are no partitions'
);
select is((select bool_or(ran) from trunkline.run_duties() where duty = 'maintain_partitions'), true, 'the duty is due at once');
select ok(not t.used(), 'and empties the defaults');
select is((t.job(:'earlier')).state, 'completed', 'the job is still there');
select is(length((t.job(:'earlier')).result ->> 'text'), 5000, 'with its result');
select is(trunkline.maintain_partitions(), 0, 'a second run has nothing to do');
select t.ended() as again \gset
select ok(not t.used(), 'further jobs of that day go to its partition');

-- Far ahead, and back: the days in between still get theirs when their time comes.
select trunkline_test.move_time('40 days') \g /dev/null
select t.ended() as ahead \gset
select trunkline_test.move_time('-39 days') \g /dev/null
select ok(t.used(), 'a day far ahead has no partition either');
select ok(trunkline.maintain_partitions() > 0, 'it gets one');
select ok(not t.used(), 'and the defaults are empty again');
select trunkline_test.move_time('20 days') \g /dev/null
select trunkline.maintain_partitions() \g /dev/null
select t.ended() as between \gset
select ok(not t.used(), 'the days before it get theirs in time');
select is(trunkline.maintain_partitions(), 0, 'and nothing is left to do');

select * from finish();
