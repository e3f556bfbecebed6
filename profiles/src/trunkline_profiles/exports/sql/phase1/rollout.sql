-- The order in which the service is put into operation: every step has a dry run, and its result is recorded.
-- requires: create, work, reading, cleanup, operate
-- source: 2.2 (schema steps), 2.15

create table if not exists exports.rollout_results (
  result bigint generated always as identity primary key,
  plan text not null check (plan in ('checklist', 'rollback')),
  step text not null,
  dry_run boolean not null,
  outcome text not null check (outcome in ('done', 'would_do', 'refused')),
  detail jsonb not null,
  evidence text,
  at timestamptz not null,
  actor text not null default session_user
);
create index if not exists rollout_results_by_step on exports.rollout_results (plan, step, result);
comment on table exports.rollout_results is 'Results of the steps of the roll-out and of the way back, with time and caller.';
alter table exports.rollout_results enable row level security;
alter table exports.rollout_results force row level security;
drop policy if exists service_only on exports.rollout_results;
create policy service_only on exports.rollout_results
to trunkline_owner, trunkline_operator, trunkline_reader using (true) with check (true);

create or replace view exports.rollout_steps as
select *
from (
  values
    ('checklist', 1, '013_jobs', 'auto', 'R+0', 'the records of exports exist'),
    ('checklist', 2, '014_history', 'auto', 'R+0', 'the history exists'),
    ('checklist', 3, '016_policies', 'auto', 'R+0', 'row security is on, and users write no rows of exports'),
    ('checklist', 4, '017_indexes', 'auto', 'R+0', 'the indexes exist and are valid'),
    ('checklist', 5, '018_claim', 'auto', 'R+0', 'the claim exists, and the limit of renders is set'),
    ('checklist', 6, 'worker_ready', 'auto', 'R+1', 'a live worker serves exports and the cleanup'),
    ('checklist', 7, 'cleanup_scheduled', 'auto', 'R+1', 'the cleanup has its schedule'),
    ('checklist', 8, 'first_export', 'auto', 'R+1', 'an export is completed'),
    ('rollback', 1, 'queue_drained', 'auto', 'B+0', 'no export waits or runs')
) as s (plan, place, step, proof, at, title);
comment on view exports.rollout_steps is 'The steps of the roll-out and of the way back in order.';

create or replace function exports.step_problems(p_step text)
returns text[]
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_live bigint;
begin
  case p_step
    when '013_jobs' then
      return array(select 'exports.requests is missing' where to_regclass('exports.requests') is null);
    when '014_history' then
      return array(select 'exports.export_history is missing' where to_regclass('exports.export_history') is null);
    when '016_policies' then
      return array(
        select format('%s has no row security', c.oid::regclass)
        from pg_class as c
        where c.relnamespace = 'exports'::regnamespace and c.relkind = 'r' and not (c.relrowsecurity and c.relforcerowsecurity)
      ) || array(
        select format('%s may write %s', r.rolname, t.name)
        from pg_roles as r
        cross join (values ('exports.requests'), ('exports.export_history')) as t (name)
        where r.rolname in ('anon', 'authenticated') and has_table_privilege(r.oid, t.name, 'insert, update, delete')
      );
    when '017_indexes' then
      return array(
        select format('index %s is missing or not valid', n.name)
        from unnest('{export_jobs_user_idx,export_history_user_idx,export_history_expires_idx}'::text[]) as n (name)
        where not exists (
          select from pg_index as i where i.indexrelid = to_regclass('exports.' || n.name) and i.indisvalid
        )
      );
    when '018_claim' then
      return array(
        select 'the limit exports-renders has no number of renders'
        where not exists (select from trunkline.limits as l where l.name = 'exports-renders' and l.concurrency > 0)
      );
    when 'worker_ready' then
      return array(
        select format('no worker serves %s', t.task)
        from unnest('{export_document,cleanup_expired_exports}'::text[]) as t (task)
        where not exports.is_served(p_task => t.task)
      );
    when 'cleanup_scheduled' then
      return array(
        select 'the schedule cleanup-expired-exports is missing or paused'
        where not exists (
          select from trunkline.schedules as s where s.schedule = 'cleanup-expired-exports' and not s.paused
        )
      );
    when 'first_export' then
      return array(select 'no export is completed' where not exists (select from exports.export_history));
    when 'queue_drained' then
      select count(*) into v_live from exports.export_jobs as j where j.status in ('pending', 'processing');
      return array(select format('%s exports wait or run', v_live) where v_live > 0);
    else
      return '{}';
  end case;
end;
$$;
comment on function exports.step_problems(text) is 'Returns why a step cannot be taken or does not hold. Changes nothing.';

create or replace function exports.run_step(
  p_plan text,
  p_step text,
  p_dry_run boolean default true,
  p_evidence text default null,
  p_problems text[] default null
)
returns exports.rollout_results
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_problems text[];
  v_result exports.rollout_results;
begin
  if not exists (select from exports.rollout_steps as s where s.plan = p_plan and s.step = p_step) then
    perform exports.refuse(
      p_code => 'step_refused', p_message => format('there is no step %s of %s', p_step, p_plan),
      p_detail => jsonb_build_object('known', (
        select jsonb_agg(s.plan || ' ' || s.step order by s.plan, s.place) from exports.rollout_steps as s
      ))
    );
  end if;
  -- Problems that the caller found outside the database count too.
  v_problems := exports.step_problems(p_step => p_step) || coalesce(p_problems, '{}');
  insert into exports.rollout_results (plan, step, dry_run, outcome, detail, evidence, at)
  values (
    p_plan, p_step, p_dry_run, case when v_problems <> '{}' then 'refused' when p_dry_run then 'would_do' else 'done' end,
    jsonb_build_object('problems', v_problems), p_evidence, trunkline.clock()
  )
  returning * into v_result;
  return v_result;
end;
$$;
comment on function exports.run_step(text, text, boolean, text, text[]) is 'Takes one step of the roll-out or of the way back, or tries it as a dry run; the result is always recorded, including a refusal.';
