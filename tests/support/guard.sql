-- The guard of a test database: refuses every change of state that job_transitions does not allow,
-- a second end of an attempt, and, at commit, a job that is in two tables or vanished.
-- Installed by a superuser; the engine knows nothing of it. Its rows are only touched by the session that
-- holds the job's own row, so it adds no order of locks.
create schema trunkline_guard;

create table trunkline_guard.states (
  job_id uuid primary key,
  state text not null,
  attempt integer not null,
  -- The table it entered last; a claim enters running before it leaves waiting.
  place text not null
);

-- Attempts that ended, each once.
create table trunkline_guard.ends (
  job_id uuid not null,
  attempt integer not null,
  primary key (job_id, attempt)
);

create function trunkline_guard.note() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_before trunkline_guard.states;
  v_row jsonb;
  v_job uuid;
  v_attempt integer;
  v_from text;
  v_to text;
begin
  v_row := to_jsonb(case tg_op when 'DELETE' then old else new end);
  v_job := v_row ->> 'job_id';
  v_attempt := v_row ->> 'attempt';
  select s.* into v_before from trunkline_guard.states as s where s.job_id = v_job;
  if tg_op = 'DELETE' then
    if tg_argv[0] = 'running' then
      insert into trunkline_guard.ends (job_id, attempt) values (v_job, v_attempt);
    end if;
    -- For the judge: it may have been its only place.
    update trunkline_guard.states as s set place = 'none' where s.job_id = v_job and s.place = tg_argv[0];
    return null;
  end if;
  v_to := coalesce(v_row ->> 'state', tg_argv[0]);
  v_from := coalesce(v_before.state, 'none');
  if not exists (
    select from trunkline_internal.job_transitions as t where t.from_state = v_from and t.to_state = v_to
  ) then
    raise exception using
      errcode = 'TG001', message = 'guard: illegal change of state',
      detail = format('job %s from %s to %s', v_job, v_from, v_to);
  end if;
  if v_attempt <> coalesce(v_before.attempt, 0) + (v_from <> 'running' and v_to = 'running')::integer then
    raise exception using
      errcode = 'TG002', message = 'guard: attempt number did not follow',
      detail = format('job %s from %s attempt %s to %s attempt %s', v_job, v_from, v_before.attempt, v_to, v_attempt);
  end if;
  insert into trunkline_guard.states (job_id, state, attempt, place)
  values (v_job, v_to, v_attempt, tg_argv[0])
  on conflict (job_id) do update set state = excluded.state, attempt = excluded.attempt, place = excluded.place;
  return null;
end;
$$;

-- Deferred, so that it sees what the transaction leaves behind.
create function trunkline_guard.judge() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_places text[];
  v_last text;
begin
  select array_agg(p.place) into v_places
  from (
    select 'waiting' as place from trunkline_internal.waiting as w where w.job_id = new.job_id
    union all
    select 'running' from trunkline_internal.running as r where r.job_id = new.job_id
    union all
    select 'finished' from trunkline_internal.finished as f where f.job_id = new.job_id
    union all
    select 'dead' from trunkline_internal.dead as d where d.job_id = new.job_id
  ) as p;
  if cardinality(v_places) > 1 then
    raise exception using
      errcode = 'TG003', message = 'guard: a job is in two places',
      detail = format('job %s is in %s', new.job_id, v_places);
  end if;
  if v_places is null then
    select s.state into v_last from trunkline_guard.states as s where s.job_id = new.job_id;
    if v_last is not null and not exists (
      select from trunkline_internal.job_transitions as t where t.from_state = v_last and t.to_state = 'none'
    ) then
      raise exception using
        errcode = 'TG004', message = 'guard: a job vanished',
        detail = format('job %s was %s', new.job_id, v_last);
    end if;
    delete from trunkline_guard.states as s where s.job_id = new.job_id;
  end if;
  return null;
end;
$$;

create trigger guard after insert or update or delete on trunkline_internal.waiting
for each row execute function trunkline_guard.note('waiting');
create trigger guard after insert or update or delete on trunkline_internal.running
for each row execute function trunkline_guard.note('running');
create trigger guard after insert or update or delete on trunkline_internal.finished
for each row execute function trunkline_guard.note('finished');
create trigger guard after insert or update or delete on trunkline_internal.dead
for each row execute function trunkline_guard.note('dead');

create constraint trigger judge after insert or update on trunkline_guard.states
deferrable initially deferred
for each row execute function trunkline_guard.judge();
