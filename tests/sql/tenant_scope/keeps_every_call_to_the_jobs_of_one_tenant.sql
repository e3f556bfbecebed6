-- A session that acts for tenant a reaches the jobs, workers and lists of a, and none of b or of nobody.
\ir ../helpers/tools.sql
\ir ../helpers/cases.sql
\ir ../../support/internals/frozen.sql
select plan(40);

-- Three jobs of one worker: of a, of b and of nobody. `t.others` is how the others look, which no call may change.
create table t.trio (place integer, tenant text, job_id uuid);
grant all on t.trio to public;
create function t.running() returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform set_config('trunkline.tenant', '', true);
  delete from t.trio;
  for v_place in 1..3 loop
    insert into t.trio values (v_place, (array['a', 'b', null])[v_place], (trunkline.enqueue(
      p_task => 'mail', p_tenant => (array['a', 'b', null])[v_place], p_priority => 49
    )).job_id);
    perform trunkline.claim(p_worker => 'w1', p_limit => 10);
  end loop;
end;
$$;
create function t.others() returns text language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select string_agg(j::text, ',' order by j.job_id) from trunkline.jobs as j join t.trio as o on o.job_id = j.job_id where o.place > 1
$$;
create function t.made(p_state text) returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if p_state = 'ready' then
    delete from t.trio;
    insert into t.trio
    select n, (array['a', 'b', null])[n], (trunkline.enqueue(p_task => 'mail', p_tenant => (array['a', 'b', null])[n])).job_id from generate_series(1, 3) as n;
    return;
  end if;
  perform t.running();
  if p_state = 'completed' then
    perform trunkline.complete('w1', (select array_agg(job_id) from t.trio), array[1, 1, 1]);
  elsif p_state = 'dead' then
    perform trunkline.fail('w1', (select array_agg(job_id) from t.trio), array[1, 1, 1], p_retryable => array[false, false, false]);
  end if;
end;
$$;
-- What a call is refused with, for each of the three.
create function t.outcomes(p_call text) returns text language plpgsql as $$
declare
  v_outcomes text[];
begin
  perform set_config('trunkline.tenant', 'a', false);
  v_outcomes := array(select t.outcome(format(p_call, o.job_id)) from t.trio as o order by o.place);
  perform set_config('trunkline.tenant', '', false);
  return array_to_string(v_outcomes, ', ');
end;
$$;
create function pg_temp.told(p_function text) returns text language plpgsql as $$
declare
  v_before text;
  v_rows text;
begin
  perform t.running();
  v_before := t.others();
  perform set_config('trunkline.tenant', 'a', false);
  execute format(
    'select string_agg(concat_ws($1, v.verdict, v.state), $2 order by o.place)
     from trunkline.%s($3, $4, $5) as v join t.trio as o on o.job_id = v.job_id', p_function
  ) into v_rows using ' ', ', ', 'w1', (select array_agg(job_id order by place) from t.trio), array[1, 1, 1];
  perform set_config('trunkline.tenant', '', false);
  return v_rows || case when t.others() = v_before then '' else ', and others were changed' end;
end;
$$;
set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_backoff => '{"base": 60, "jitter": 0}') \g /dev/null
select trunkline.register_worker('w1') \g /dev/null
select is(pg_temp.told('heartbeat'), 'ok running, lost gone, lost gone', 'heartbeat');
select is(pg_temp.told('complete'), 'ok completed, lost gone, lost gone', 'complete');
select is(pg_temp.told('fail'), 'ok scheduled, lost gone, lost gone', 'fail');
select is(pg_temp.told('snooze'), 'ok scheduled, lost gone, lost gone', 'snooze');
select is(pg_temp.told('release'), 'ok ready, lost gone, lost gone', 'release');
select is(pg_temp.told('acknowledge_cancel'), 'ok cancelled, lost gone, lost gone', 'acknowledge_cancel');
select is(pg_temp.told('hand_over'), 'ok dead, lost gone, lost gone', 'hand_over');
select t.running() \g /dev/null
select t.others() as before \gset
set trunkline.tenant = 'a';
select is(
  (select string_agg(trunkline.progress('w1', o.job_id, 1, 5), ', ' order by o.place) from t.trio as o), 'ok, lost, lost', 'progress'
);
select is(
  (select array_agg(o.tenant || ' ' || v.verdict || ' ' || v.state) from trunkline.release_forgotten('w1', '{}') as v join t.trio as o on o.job_id = v.job_id),
  array['a ok ready'], 'release_forgotten'
);
reset trunkline.tenant;
select is(t.others(), :'before', 'the others are as they were');
set trunkline.tenant = 'a';
select is((select array_agg(c.tenant) from trunkline.claim('w1', p_limit => 10) as c), array['a', 'a', 'a'], 'claim');
select is((select array_agg(c.tenant) from trunkline.claim('w1', p_limit => 10, p_position => '{}') as c where c.job_id is not null), null, 'claim with a position');

-- Waiting jobs of the three, and ended ones.
reset trunkline.tenant;
set session authorization trunkline_producer;
select t.made('ready') \g /dev/null
select is(t.outcomes('cancel(%L)'), 'accepted, unknown_job, unknown_job', 'cancel');
select is(t.outcomes('reprioritise(%L, 5)'), 'accepted, unknown_job, unknown_job', 'reprioritise');
select is(t.outcomes('explain(%L)'), 'accepted, unknown_job, unknown_job', 'explain');
select t.made('running') \g /dev/null
select is(t.outcomes('cancel(%L)'), 'accepted, unknown_job, unknown_job', 'cancel of a running job');
select is(t.outcomes('reprioritise(%L, 5)'), 'wrong_state, unknown_job, unknown_job', 'reprioritise of a running job');
set session authorization trunkline_operator;
select is(t.outcomes('retry(%L)'), 'wrong_state, unknown_job, unknown_job', 'retry of a running job');
select is(t.outcomes('discard(%L)'), 'wrong_state, unknown_job, unknown_job', 'discard of a running job');
select t.made('completed') \g /dev/null
select is(t.outcomes('retry(%L)'), 'accepted, unknown_job, unknown_job', 'retry');
select is(t.outcomes('acknowledge(%L)'), 'wrong_state, unknown_job, unknown_job', 'acknowledge of a completed job');
select is(t.outcomes('cancel(%L)'), 'accepted, unknown_job, unknown_job', 'cancel of a completed job');
select t.made('dead') \g /dev/null
select is(t.outcomes('retry(%L)'), 'accepted, unknown_job, unknown_job', 'retry of a dead letter');
select is(t.outcomes('discard(%L)'), 'accepted, unknown_job, unknown_job', 'discard');
select is(t.outcomes('acknowledge(%L)'), 'accepted, unknown_job, unknown_job', 'acknowledge');

-- Lists and views, with jobs of every state of all three.
select t.made('completed'), t.made('running'), t.made('ready') \g /dev/null
select trunkline.set_schedule('mine', '@daily', 'nightly', p_tenant => 'a') from trunkline.register_task('nightly') \g /dev/null
select trunkline.set_schedule('theirs', '@daily', 'weekly', p_tenant => 'b') from trunkline.register_task('weekly') \g /dev/null
select trunkline.register_task('unused') \g /dev/null
create function pg_temp.tenants(p_from text) returns text language plpgsql as $$
declare
  v_tenants text;
begin
  execute format('select string_agg(distinct coalesce(tenant, $1), $2 order by coalesce(tenant, $1)) from %s', p_from) into v_tenants using 'none', ', ';
  return v_tenants;
end;
$$;
create temporary table seen (place serial, source text);
insert into seen (source) values
  ('trunkline.jobs'), ('trunkline.list_jobs()'), ('unnest((trunkline.find_jobs()).jobs)'), ('trunkline.dead_letters'),
  ('trunkline.events'), ('trunkline.stale_monitor'), ('trunkline.schedules where tenant is not null');
select is(
  (select array_agg(source || ': ' || pg_temp.tenants(source) order by place) from seen),
  array[
    'trunkline.jobs: a, b, none', 'trunkline.list_jobs(): a, b, none', 'unnest((trunkline.find_jobs()).jobs): a, b, none',
    'trunkline.dead_letters: a, b, none', 'trunkline.events: a, b, none', 'trunkline.stale_monitor: a, b, none',
    'trunkline.schedules where tenant is not null: a, b'
  ],
  'an operator for all tenants sees all of them'
);
select is(
  (select array_agg(task order by task) from trunkline.tasks), array['mail', 'nightly', 'unused', 'weekly'], 'and all tasks'
);
select is((select sum(completed) from trunkline.throughput), 7::numeric, 'and counts all ends');
set trunkline.tenant = 'a';
select is(
  (select array_agg(source || ': ' || pg_temp.tenants(source) order by place) from seen),
  array[
    'trunkline.jobs: a', 'trunkline.list_jobs(): a', 'unnest((trunkline.find_jobs()).jobs): a', 'trunkline.dead_letters: a',
    'trunkline.events: a', 'trunkline.stale_monitor: a', 'trunkline.schedules where tenant is not null: a'
  ],
  'one for a sees those of a'
);
select is((select array_agg(task order by task) from trunkline.tasks), array['mail', 'nightly'], 'the tasks of its jobs and schedules');
select is((select sum(completed) from trunkline.throughput), 3::numeric, 'counts its ends');
select is(
  (select queue || ' ' || ready || ' ' || scheduled || ' ' || running || ' ' || dead from trunkline.queue_sizes()), 'default 1 2 6 2', 'and its jobs'
);
select is_empty('select * from trunkline.workers', 'but sees no workers');
select is(t.refusal($$select trunkline.enqueue('mail', p_tenant => 'b')$$) - 'message', '{"sqlstate": "TL017", "code": "tenant_denied", "tenant": "b"}'::jsonb, 'it enqueues for no other');
select is(t.refusal($$select trunkline.enqueue_many('[{"task": "mail"}, {"task": "mail", "tenant": "b"}]')$$) - 'message', '{"sqlstate": "TL017", "code": "tenant_denied", "tenant": "b", "index": 1}'::jsonb, 'nor in a batch');
select is(t.refusal($$select trunkline.enqueue('unheard')$$) - 'message', '{"sqlstate": "TL001", "code": "unknown_task", "task": "unheard"}'::jsonb, 'and does not learn the tasks of others');

-- What is for all tenants.
delete from t.cases;
insert into t.cases (call, expected) values
  ($$pause_queue('q')$$, 'needs_all_tenants'), ($$resume_queue('default')$$, 'needs_all_tenants'), ($$limit_queue('q', 1)$$, 'needs_all_tenants'),
  ($$age_queue('q')$$, 'needs_all_tenants'), ($$set_setting('lease', '100 seconds')$$, 'needs_all_tenants'),
  ($$enable_duty('promote', false)$$, 'needs_all_tenants'), ($$set_limit('api', '{"concurrency": 1}')$$, 'needs_all_tenants'),
  ($$register_task('mail', p_priority => 5)$$, 'needs_all_tenants'), ($$register_task('new')$$, 'needs_all_tenants'),
  ($$register_task('mail')$$, 'accepted'), ($$enqueue('mail', p_tenant => 'a')$$, 'accepted'), ($$enqueue('mail', p_accepted => true)$$, 'p_accepted');
select is_empty('select * from t.surprises()', 'what would change something for all tenants is refused');
select is(
  t.refusal($$select trunkline.register_task('mail', p_priority => 5, p_audit => true, p_lease => '9 seconds', p_max_attempts => 4)$$) - 'message',
  '{"sqlstate": "TL036", "code": "needs_all_tenants", "task": "mail", "known": true, "differs": ["audit", "lease", "priority"]}'::jsonb,
  'with what differs'
);
-- A claim of another tenant than the setting's leaves the session with none.
set request.jwt.claims = '{"tenant": "b"}';
select is(trunkline.tenant_scope() || '|' || (select count(*) from trunkline.jobs), '|0', 'two different tenants are none');
set request.jwt.claims = '{"tenant": "a"}';
select is(trunkline.tenant_scope(), 'a', 'the same twice is that one');

select * from finish();
