-- A worker that sleeps wakes when the first job of the highest priority fits, not an older or a smaller one behind it.
\ir ../helpers/tools.sql
\ir ../../support/internals/frozen.sql
select plan(7);

create function t.put(p_name text, p_tokens integer, p_priority integer default 0, p_queue text default 'default') returns void
language sql security definer set search_path = pg_catalog, pg_temp
as $$
  select trunkline.enqueue('ask', p_correlation_id => p_name, p_priority => p_priority, p_queue => p_queue, p_cost => jsonb_build_object('tokens', p_tokens))
$$;
create function pg_temp.opening(p_queues text[] default null) returns interval language sql as $$
  select t.after_noon(trunkline.sleep('w1', p_queues))
$$;
set session authorization trunkline_operator;
select trunkline.set_limit('api', '{"tokens_per_minute": 100}'), trunkline.register_task('ask', p_limits => array['api']) \g /dev/null
set session authorization trunkline_worker;
select trunkline.register_worker('w1', p_pulse_interval => '1 hour') \g /dev/null
select t.put('first', 50) \g /dev/null
select trunkline.claim('w1') \g /dev/null
select trunkline_test.move_time('30 seconds') \g /dev/null
select t.put('second', 40) \g /dev/null
select trunkline.claim('w1') \g /dev/null
select is(pg_temp.opening(), null, 'no job waits');
select t.put('small', 5, -3) \g /dev/null
select is(pg_temp.opening(), interval '30.05 seconds', 'a job that fits waits for nothing');
select t.put('high', 60, 3), t.put('next', 100, 3) \g /dev/null
select is(pg_temp.opening(), interval '62 seconds', 'the first of the highest priority fits when the first charge leaves the window');
select t.put('there', 90, 0, 'other') \g /dev/null
select is(pg_temp.opening(array['other']), interval '92 seconds', 'one of another queue when the second one does too');
select is(pg_temp.opening(), interval '62 seconds', 'of all queues the earliest');
select is((select array_agg(c.correlation_id) from trunkline.claim('w1', p_limit => 9) as c), null, 'until then a smaller job does not overtake it');
select trunkline_test.move_time('32 seconds') \g /dev/null
select is((select array_agg(c.correlation_id) from trunkline.claim('w1', p_limit => 9) as c), array['high'], 'then it starts');

select * from finish();
