-- RF-120, CP-95: whoever is awake, stopped, started anew or gone leaves no flag behind, so that nobody is notified for nothing.
\ir ../helpers/tools.sql
\ir ../../support/internals/internals.sql
select plan(11);

create function t.asleep(p_worker text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
begin
  perform trunkline.register_worker(p_worker => p_worker);
  perform trunkline.sleep(p_worker => p_worker, p_queues => array['a', 'b']);
end
$$;

set session authorization trunkline_worker;
select t.asleep('w1'), t.asleep('w2') \g /dev/null
select is(trunkline.wake(p_worker => 'w1'), true, 'a worker that slept');
select is(t.flags(), array['w2 a', 'w2 b'], 'takes all its flags back and no other');
select is(trunkline.wake(p_worker => 'w1'), false, 'one that was awake already');
select is(trunkline.wake(p_worker => 'w9'), false, 'or is unknown changes nothing');

select trunkline.stop_worker(p_worker => 'w2') \g /dev/null
select is(t.flags(), null, 'who stops sleeps no more');

select t.asleep('w1'), t.asleep('w2') \g /dev/null
select trunkline.register_worker(p_worker => 'w1') \g /dev/null
select is(t.flags(), array['w2 a', 'w2 b'], 'who starts anew begins awake');

select t.asleep('w1') \g /dev/null
select trunkline_test.move_time('9 seconds') \g /dev/null
select trunkline.reclaim() \g /dev/null
select is(t.flags(), array['w1 a', 'w1 b', 'w2 a', 'w2 b'], 'one missed pulse is no death');
select trunkline.pulse(p_worker => 'w2') \g /dev/null
select trunkline_test.move_time('2 seconds') \g /dev/null
select trunkline.reclaim() \g /dev/null
select is(t.flags(), array['w2 a', 'w2 b'], 'who is gone is not notified any more');
set session authorization trunkline_operator;
select trunkline.drain_worker(p_worker => 'w2') \g /dev/null
set session authorization trunkline_worker;
select trunkline.reclaim() \g /dev/null
select is(t.flags(), array['w2 a', 'w2 b'], 'who drains is still there');
select t.set_flag('never registered', 'a') \g /dev/null
select trunkline.reclaim() \g /dev/null
select is(t.flags(), array['w2 a', 'w2 b'], 'nor is anybody whom the list of workers does not know');
set session authorization trunkline_operator;
select is(t.refusal($$select trunkline.wake(p_worker => 'w2')$$) ->> 'sqlstate', '42501', 'an operator wakes nobody by it');

select * from finish();
