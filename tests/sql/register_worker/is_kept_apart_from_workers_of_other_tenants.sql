-- A worker row is complete, is alive until just so many pulses were missed, and belongs to the tenant of its session.
\ir ../helpers/tools.sql
\ir ../../support/internals/frozen.sql
select plan(29);

-- All columns of a worker, with times after noon.
create function t.worker(p_worker text) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select to_jsonb(w) || jsonb_build_object('started_at', t.after_noon(w.started_at), 'seen_at', t.after_noon(w.seen_at)) from trunkline.workers as w where w.worker = p_worker
$$;
create function t.state(p_worker text) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select w.state || case when w.alive then ' alive ' else ' silent ' end || t.after_noon(w.seen_at) from trunkline.workers as w where w.worker = p_worker
$$;
set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select trunkline.register_worker(
  'w1', p_queues => array['a'], p_tasks => array['mail'], p_host => repeat('h', 201), p_pid => 7, p_version => repeat('v', 201),
  p_pulse_interval => '10 seconds', p_detail => '{"slots": 4, "signatures": {"mail": "x"}}'
) \g /dev/null
select trunkline.register_worker('w2') \g /dev/null
select is(
  t.worker('w1'),
  jsonb_build_object(
    'worker', 'w1', 'state', 'active', 'alive', true, 'started_at', '00:00:00', 'seen_at', '00:00:00', 'pulse_interval', '00:00:10', 'running', 0,
    'host', repeat('h', 200), 'pid', 7, 'version', repeat('v', 200), 'queues', '["a"]'::jsonb, 'tasks', '["mail"]'::jsonb,
    'detail', '{"slots": 4}'::jsonb, 'signatures', '{"mail": "x"}'::jsonb
  ),
  'all that a worker says of itself'
);
select t.started('mail', 'w2'), t.started('mail', 'w2'), t.started('mail', 'w3') \g /dev/null
select is((t.worker('w2') ->> 'running')::integer, 2, 'with the number of its jobs');
select is((t.worker('w1') ->> 'running')::integer, 0, 'not those of others');
select is(t.worker('w2') -> 'pulse_interval', '"00:00:05"'::jsonb, 'the interval of pulses is the setting''s');
select trunkline_test.move_time('20 seconds') \g /dev/null
select is(t.state('w1'), 'active alive 00:00:00', 'two pulses late is just alive');
select trunkline_test.move_time('1 microsecond') \g /dev/null
select is(t.state('w1'), 'active silent 00:00:00', 'and then it is not');
select is(trunkline.pulse('w1', '{"slots": 5}'), 'active', 'a pulse');
select is(t.state('w1'), 'active alive 00:00:20.000001', 'is seen');
select trunkline.pulse('w1') \g /dev/null
select is(t.worker('w1') -> 'detail', '{"slots": 5}'::jsonb, 'a pulse without a detail keeps it');
select is(t.state('w2'), 'active silent 00:00:00', 'that of another worker is not');
set session authorization trunkline_operator;
select is(trunkline.drain_worker('w1'), 'draining', 'one that drains');
set session authorization trunkline_worker;
select is(t.state('w1') || ', ' || t.state('w2'), 'draining alive 00:00:20.000001, active silent 00:00:00', 'is alive');
select is(trunkline.pulse('w1'), 'draining', 'and is told so');
-- The clock is set back: a worker is never seen before its start.
select trunkline_test.move_time('-10 seconds') \g /dev/null
select trunkline.register_worker('w4') \g /dev/null
select trunkline_test.move_time('-5 seconds') \g /dev/null
select trunkline.pulse('w4') \g /dev/null
select is(t.state('w4'), 'active alive 00:00:10.000001', 'a pulse after the clock was set back');
select trunkline.stop_worker('w4') \g /dev/null
select is(t.state('w4'), 'stopped silent 00:00:10.000001', 'or a stop');
select trunkline_test.move_time('1 hour') \g /dev/null
select trunkline.pulse('w4') \g /dev/null
select is(t.state('w4'), 'stopped silent 00:00:10.000001', 'a stopped worker has no pulse');
set session authorization trunkline_operator;
select is(trunkline.drain_worker('w4'), 'stopped', 'and does not drain');
set session authorization trunkline_worker;
select trunkline.register_worker('w1', p_host => 'other') \g /dev/null
select is(
  t.worker('w1') - 'seen_at' - 'started_at',
  '{"worker": "w1", "state": "active", "alive": true, "pulse_interval": "00:00:05", "running": 0, "host": "other", "pid": null, "version": null,
    "queues": null, "tasks": null, "detail": null, "signatures": null}'::jsonb,
  'starting again replaces all of it'
);

-- Workers of tenant a, of b, and of all.
set trunkline.tenant = 'b';
select trunkline.register_worker('of b') \g /dev/null
select trunkline.sleep('of b', array['q']) \g /dev/null
set trunkline.tenant = 'a';
select trunkline.register_worker('of a') \g /dev/null
create function pg_temp.code(p_call text) returns text language sql as $$ select coalesce(t.refusal('select trunkline.' || p_call) ->> 'code', 'ok') $$;
select is(
  array[pg_temp.code($$pulse('of a')$$), pg_temp.code($$pulse('of b')$$), pg_temp.code($$pulse('w1')$$)], array['ok', 'unknown_worker', 'unknown_worker'], 'pulse'
);
select is(
  array[pg_temp.code($$sleep('of a')$$), pg_temp.code($$sleep('of b')$$), pg_temp.code($$sleep('w1')$$)], array['ok', 'unknown_worker', 'unknown_worker'], 'sleep'
);
select is(array[trunkline.wake('of a'), trunkline.wake('of b'), trunkline.wake('w1')], array[true, false, false], 'wake');
select is(
  array[pg_temp.code($$stop_worker('of a')$$), pg_temp.code($$stop_worker('of b')$$), pg_temp.code($$stop_worker('w1')$$)], array['ok', 'unknown_worker', 'unknown_worker'], 'stop_worker'
);
select is(
  t.refusal($$select trunkline.register_worker('of b')$$) - 'message', '{"sqlstate": "TL017", "code": "tenant_denied", "worker": "of b"}'::jsonb, 'nor is its name taken'
);
select is(pg_temp.code($$register_worker('of a')$$), 'ok', 'it starts its own again');
set session authorization trunkline_operator;
reset trunkline.tenant;
select is(
  (select array_agg(w.worker || ' ' || w.state order by w.worker) from trunkline.workers as w where w.worker like 'of %' or w.worker = 'w1'),
  array['of a active', 'of b active', 'w1 active'], 'the others are as they were'
);
set session authorization trunkline_worker;
select is(trunkline.wake('of b'), true, 'and still ask to be woken');

-- The worker that hand_over names: alive, active, with another fingerprint; the one that started last.
select trunkline_test.move_time('1 hour') \g /dev/null
select trunkline.register_worker('mine', p_detail => '{"signatures": {"mail": "x"}}') \g /dev/null
create function pg_temp.named() returns text language plpgsql as $$
declare
  v_job uuid := t.started('mail', 'mine');
  v_other text;
begin
  select h.other_worker into v_other from trunkline.hand_over('mine', array[v_job], array[1]) as h;
  return coalesce(v_other, 'nobody');
end;
$$;
select trunkline.register_worker('z', p_detail => '{"signatures": {"mail": "y"}}') \g /dev/null
select trunkline.register_worker('y', p_detail => '{"signatures": {"mail": "y"}}') \g /dev/null
select is(pg_temp.named(), 'y', 'of two that started together the first by name');
select trunkline_test.move_time('1 second') \g /dev/null
select trunkline.register_worker('z', p_detail => '{"signatures": {"mail": "y"}}') \g /dev/null
select trunkline.register_worker('same', p_detail => '{"signatures": {"mail": "x"}}') \g /dev/null
select is(pg_temp.named(), 'z', 'otherwise the one that started last');
select trunkline_test.move_time('10 seconds') \g /dev/null
select is(pg_temp.named(), 'z', 'until two pulses are missed');

select * from finish();
