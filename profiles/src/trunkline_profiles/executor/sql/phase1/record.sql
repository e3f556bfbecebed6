-- The record: types and their TTLs, the view executor_jobs over the engine, and the results of cycles.
-- requires:
-- source: 000000

create table if not exists executor.executor_type_settings (
  type text primary key check (type <> '' and length(type) <= 200),
  ttl interval not null check (ttl >= interval '1 second' and ttl <= interval '365 days'),
  hard_limit interval check (hard_limit >= ttl),
  queue text not null check (queue <> '' and length(queue) <= 200),
  heartbeat_every interval check (heartbeat_every > interval '0' and 3 * heartbeat_every <= ttl)
);
comment on table executor.executor_type_settings is 'Time-to-live of each type. The default hard limit is four times the TTL; a type without heartbeat_every needs no heartbeats.';
alter table executor.executor_type_settings enable row level security;
alter table executor.executor_type_settings force row level security;
drop policy if exists service_only on executor.executor_type_settings;
create policy service_only on executor.executor_type_settings
to trunkline_owner, trunkline_producer, trunkline_worker, trunkline_operator, trunkline_reader using (true) with check (true);

create table if not exists executor.executor_cycles (
  cycle bigint generated always as identity primary key,
  at timestamptz not null,
  wrapper text not null,
  queue text not null,
  reclaimed integer not null,
  error text
);
create index if not exists executor_cycles_by_time on executor.executor_cycles (at);
comment on table executor.executor_cycles is 'The result of each wake-up, kept for a day: how many jobs its reclaim took back, or why it failed.';
alter table executor.executor_cycles enable row level security;
alter table executor.executor_cycles force row level security;
drop policy if exists service_only on executor.executor_cycles;
create policy service_only on executor.executor_cycles
to trunkline_owner, trunkline_producer, trunkline_worker, trunkline_operator, trunkline_reader using (true) with check (true);

create table if not exists executor.executor_heartbeats (
  worker_id text primary key,
  calls bigint not null default 0,
  refused bigint not null default 0,
  last_at timestamptz not null
);
comment on table executor.executor_heartbeats is 'Calls of update_job_heartbeat by worker, kept for a day; the roll-back checks whether any worker still calls it.';
alter table executor.executor_heartbeats enable row level security;
alter table executor.executor_heartbeats force row level security;
drop policy if exists service_only on executor.executor_heartbeats;
create policy service_only on executor.executor_heartbeats
to trunkline_owner, trunkline_producer, trunkline_worker, trunkline_operator, trunkline_reader using (true) with check (true);

create or replace function executor.executor_status(p_state text)
returns text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when p_state in ('running', 'processing') then 'running'
    when p_state in ('completed', 'succeeded') then 'succeeded'
    when p_state in ('dead', 'cancelled') then p_state
    else 'queued'
  end
$$;
comment on function executor.executor_status(text) is 'Returns this profile''s status for a state of the engine; processing, an older status, is read as running and never written.';

create or replace function executor.executor_time(p_text text)
returns timestamptz
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_time timestamptz;
begin
  v_time := p_text::timestamptz;
  -- Views subtract and print this time, where infinity and the ends of the calendar would overflow.
  return case when v_time between '1970-01-01 00:00:00+00' and '9000-01-01 00:00:00+00' then v_time end;
exception
  when data_exception then
    -- A worker may report any error, which must not break the view.
    return null;
end;
$$;
comment on function executor.executor_time(text) is 'Parses a time from an error; null if it is not a time between the years 1970 and 9000.';

create or replace function executor.executor_was_reclaimed(p_error jsonb)
returns boolean
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    p_error ->> 'type' in ('lease_expired', 'hard_limit', 'worker_gone')
      and (p_error ? 'lost_at' or p_error ? 'truncated'),
    false
  )
$$;
comment on function executor.executor_was_reclaimed(jsonb) is 'Returns whether a reclaim, not a handler, wrote an error.';

create or replace function executor.executor_last_error(p_state text, p_error jsonb)
returns text
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_locked timestamptz;
  v_ended timestamptz;
  v_limit numeric;
begin
  if p_error is null then
    return null;
  end if;
  if not executor.executor_was_reclaimed(p_error => p_error) then
    return concat_ws(': ', p_error ->> 'type', coalesce(p_error ->> 'message', p_error::text));
  end if;
  v_locked := executor.executor_time(p_text => p_error ->> 'claimed_at');
  v_ended := executor.executor_time(p_text => p_error ->> 'lease_expires_at');
  v_limit := case
    when p_error ->> 'type' = 'hard_limit' then extract(epoch from v_ended - v_locked)
    else extract(epoch from v_ended - greatest(v_locked, executor.executor_time(p_text => p_error ->> 'heartbeat_at')))
  end;
  return concat(
    'RECLAIMED_TTL: ',
    case p_error ->> 'type' when 'hard_limit' then 'Exceeded hard limit' when 'worker_gone' then 'Worker gone, TTL' else 'Exceeded TTL' end,
    ' (' || trim_scale(round(v_limit / 60, 2)) || ' min)',
    case when p_state = 'dead' then '; Max attempts reached' end,
    '; worker ' || (p_error ->> 'worker'),
    ', locked at ' || to_char(v_locked at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
  );
end;
$$;
comment on function executor.executor_last_error(text, jsonb) is 'Returns the last error as text; that of a reclaim begins with RECLAIMED_TTL: and names the TTL, the old worker and the time of its lock.';

create or replace view executor.executor_jobs with (security_barrier = true) as
select
  j.job_id as id,
  j.unique_key as dedupe_key,
  j.task as type,
  executor.executor_status(p_state => j.state) as status,
  j.payload,
  least(j.failures + 1, j.max_attempts) as attempts,
  case when j.state = 'running' then j.claimed_at end as locked_at,
  case when j.state = 'running' then j.worker end as locked_by,
  coalesce(
    j.heartbeat_at,
    case
      when j.state <> 'running' and executor.executor_was_reclaimed(p_error => j.last_error)
        then executor.executor_time(p_text => j.last_error ->> 'heartbeat_at')
    end
  ) as heartbeat_at,
  executor.executor_last_error(p_state => j.state, p_error => j.last_error) as last_error,
  j.created_at,
  greatest(
    j.created_at, j.claimed_at, j.heartbeat_at, j.finished_at,
    case
      when executor.executor_was_reclaimed(p_error => j.last_error)
        then executor.executor_time(p_text => j.last_error ->> 'lost_at')
    end
  ) as updated_at,
  j.run_at as due_at,
  j.tenant
from trunkline.jobs as j
-- An array and not a join: tasks is often too small to be analysed, and the planner then expects so few rows of a join
-- that it reads all jobs for a page, 0.8 s with 500,000.
where j.task = any(array(
  select t.task from trunkline.tasks as t where t.profile = 'executor'
));
comment on view executor.executor_jobs is 'The jobs of this profile with the names of its source system; attempts is the number of the current or next attempt, at most the limit.';

create or replace view executor.executor_job_types with (security_barrier = true) as
select
  t.task as type, t.queue, t.lease as ttl, t.hard_limit, t.max_attempts, s.heartbeat_every,
  s.type is not null as configured
from trunkline.tasks as t
left join executor.executor_type_settings as s on s.type = t.task
where t.profile = 'executor';
comment on view executor.executor_job_types is 'Types with the TTL in force; an unconfigured type runs with the default of 30 minutes and should be checked.';

create or replace function executor.set_job_type(
  p_type text,
  p_ttl interval default interval '30 minutes',
  p_queue text default 'orchestrator',
  p_hard_limit interval default null,
  p_heartbeat_every interval default null
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into executor.executor_type_settings as s (type, ttl, hard_limit, queue, heartbeat_every)
  values (p_type, p_ttl, p_hard_limit, p_queue, p_heartbeat_every)
  on conflict (type) do update
  set
    ttl = excluded.ttl, hard_limit = excluded.hard_limit, queue = excluded.queue, heartbeat_every = excluded.heartbeat_every;
  return executor.executor_register(p_type => p_type, p_ttl => p_ttl, p_queue => p_queue, p_hard_limit => p_hard_limit);
end;
$$;
comment on function executor.set_job_type(text, interval, text, interval, interval) is 'Sets the TTL, the hard limit and the queue of a type; running jobs keep the lease they have until their next heartbeat or claim.';

create or replace function executor.executor_register(p_type text, p_ttl interval, p_queue text, p_hard_limit interval)
returns text
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  select trunkline.register_task(
    p_task => p_type, p_queue => p_queue, p_lease => p_ttl, p_hard_limit => coalesce(p_hard_limit, 4 * p_ttl),
    p_max_attempts => 10, p_backoff => '{"base": 10, "factor": 2, "cap": 600, "jitter": 0.2}',
    -- Timeouts of this profile are exact: a job is taken back at its TTL, not when its worker dies.
    p_reclaim_on_worker_death => false, p_crash_limit => 10, p_lost_backoff => true,
    -- A decision requested while another one runs is a separate job.
    p_unique_until => case when p_queue = 'fase1-executor' then 'claim' else 'end' end,
    p_profile => 'executor'
  )
$$;
comment on function executor.executor_register(text, interval, text, interval) is 'Registers the policy of a type with the engine: ten attempts, back-off of 10 s doubling to 10 min also for lost ones, reclaim only at the TTL.';

create or replace function executor.enqueue_job(
  p_type text,
  p_payload jsonb default '{}',
  p_dedupe_key text default null
)
returns uuid
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  -- A session that acts for one tenant sees only some tasks and cannot register any.
  if trunkline.tenant_scope() is null and not exists (select from trunkline.tasks as t where t.task = p_type) then
    perform executor.executor_register(
      p_type => p_type, p_ttl => interval '30 minutes', p_queue => 'orchestrator', p_hard_limit => null
    );
    raise warning 'type % has no configured TTL: it runs with 30 min, see executor_job_types', p_type;
  end if;
  return (trunkline.enqueue(p_task => p_type, p_payload => p_payload, p_unique_key => p_dedupe_key)).job_id;
end;
$$;
comment on function executor.enqueue_job(text, jsonb, text) is 'Enqueues a job in the caller''s transaction, or returns the live one with the same dedupe key; an unknown type gets the default TTL and is reported.';

create or replace function executor.requeue_dead_jobs(
  p_type text default null,
  p_died_since timestamptz default null,
  p_limit integer default 500
)
returns setof uuid
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_job uuid;
begin
  for v_job in
    select d.job_id
    from trunkline.dead_letters as d
    join trunkline.tasks as t on t.task = d.task
    where t.profile = 'executor'
      and (p_type is null or d.task = p_type)
      and (p_died_since is null or d.died_at >= p_died_since)
    order by d.died_at
    limit p_limit
  loop
    begin
      return next (trunkline.retry(p_job => v_job)).job_id;
    exception
      when sqlstate 'TL018' then
        raise warning 'job % stays dead: a live job has its dedupe key', v_job;
    end;
  end loop;
end;
$$;
comment on function executor.requeue_dead_jobs(text, timestamptz, integer) is 'Requeues dead jobs of a type, or those that died since a time, with a new budget of attempts; also the recovery from a faulty roll-out.';

-- Insert only if missing: an installation keeps what an operator set.
insert into executor.executor_type_settings (type, ttl, queue, heartbeat_every)
values
  ('protect_document_v2', '5 minutes', 'orchestrator', null),
  ('document.protected', '5 minutes', 'orchestrator', null),
  ('run_tsa', '30 minutes', 'orchestrator', '15 seconds'),
  ('submit_anchor_polygon', '60 minutes', 'orchestrator', '15 seconds'),
  ('submit_anchor_bitcoin', '60 minutes', 'orchestrator', '15 seconds'),
  ('build_artifact', '15 minutes', 'orchestrator', null),
  ('decide_next_step', '5 minutes', 'fase1-executor', null)
on conflict (type) do nothing;

do $register$
begin
  perform executor.executor_register(p_type => s.type, p_ttl => s.ttl, p_queue => s.queue, p_hard_limit => s.hard_limit)
  from executor.executor_type_settings as s
  order by s.type;
end
$register$;

grant select on executor.executor_jobs, executor.executor_job_types to trunkline_producer, trunkline_operator, trunkline_reader;
grant select on executor.executor_type_settings, executor.executor_cycles, executor.executor_heartbeats to trunkline_operator;
revoke all on function executor.set_job_type(text, interval, text, interval, interval) from public;
grant execute on function executor.set_job_type(text, interval, text, interval, interval) to trunkline_operator;
revoke all on function executor.enqueue_job(text, jsonb, text) from public;
grant execute on function executor.enqueue_job(text, jsonb, text) to trunkline_producer, trunkline_operator;
revoke all on function executor.requeue_dead_jobs(text, timestamptz, integer) from public;
grant execute on function executor.requeue_dead_jobs(text, timestamptz, integer) to trunkline_operator;
-- The helpers of the views are called with the rights of the reader.
revoke all on function
  executor.executor_status(text), executor.executor_time(text), executor.executor_was_reclaimed(jsonb),
  executor.executor_last_error(text, jsonb), executor.executor_register(text, interval, text, interval)
from public;
grant execute on function
  executor.executor_status(text), executor.executor_time(text), executor.executor_was_reclaimed(jsonb),
  executor.executor_last_error(text, jsonb)
to trunkline_producer, trunkline_operator, trunkline_reader;
