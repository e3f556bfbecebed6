-- The catalogue: types of jobs and their documents, types of tasks with their policies, and the two limits.
-- requires: base
-- source: 2.2, 2.4, 2.11, 2.12

create table if not exists studio.job_types (
  type text primary key check (type <> '' and length(type) <= 100),
  title text not null,
  is_active boolean not null default true
);
comment on table studio.job_types is 'Types of jobs that can be ordered.';
alter table studio.job_types enable row level security;
alter table studio.job_types force row level security;
drop policy if exists all_rows on studio.job_types;
create policy all_rows on studio.job_types using (true) with check (true);

create table if not exists studio.documents (
  type text not null references studio.job_types (type),
  document integer not null check (document >= 1),
  title text not null check (title <> '' and length(title) <= 100),
  primary key (type, document)
);
comment on table studio.documents is 'The documents of each type of job, numbered from 1.';
alter table studio.documents enable row level security;
alter table studio.documents force row level security;
drop policy if exists all_rows on studio.documents;
create policy all_rows on studio.documents using (true) with check (true);

create table if not exists studio.task_types (
  task_type text primary key,
  -- Its place among the tasks of a document; null for the internal task that ends a job.
  place integer unique check (place between 0 and 2),
  queue text not null,
  hard_limit interval not null,
  lease interval not null
);
comment on table studio.task_types is 'Types of tasks with their time limits. hard_limit ends an attempt, heartbeats or not; lease is how long an attempt may be silent.';
alter table studio.task_types enable row level security;
alter table studio.task_types force row level security;
drop policy if exists all_rows on studio.task_types;
create policy all_rows on studio.task_types using (true) with check (true);

create or replace view studio.systems as
select s.system from unnest('{human_design,numerology,vedic,western}'::text[]) as s (system);
comment on view studio.systems is 'The systems of interpretation that an order may name.';

create or replace view studio.artifact_types as
select t.artifact_type, t.content_type
from (
  values ('audio_mp3', 'audio/mpeg'), ('audio_m4a', 'audio/mp4'), ('pdf', 'application/pdf'), ('json', 'application/json')
) as t (artifact_type, content_type);
comment on view studio.artifact_types is 'The kinds of files that tasks may publish, with their content type.';

-- Insert only if missing: an installation keeps what an operator set.
insert into studio.job_types (type, title) values ('nuclear_v2', 'The nuclear report') on conflict do nothing;
insert into studio.documents (type, document, title)
select 'nuclear_v2', t.document, t.title
from unnest(array[
  'Portraits', 'Hunger', 'Rhythm', 'Voices', 'Mirrors', 'Thresholds', 'Work', 'Money', 'Home', 'Kin', 'Quarrels', 'Desire',
  'Repair', 'Journeys', 'Years', 'Nucleus'
]) with ordinality as t (title, document)
on conflict do nothing;
insert into studio.task_types (task_type, place, queue, hard_limit, lease)
values
  ('text_generation', 0, 'studio', '10 minutes', '180 seconds'),
  ('pdf_generation', 1, 'studio', '5 minutes', '180 seconds'),
  ('audio_generation', 2, 'studio', '30 minutes', '180 seconds'),
  -- Not claimed through claim_tasks, not counted, and with its own pool.
  ('finalize_job', null, 'studio-final', '10 minutes', '180 seconds')
on conflict do nothing;

create or replace function studio.register_tasks()
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform trunkline.register_task(
    p_task => t.task_type, p_queue => t.queue, p_lease => t.lease, p_hard_limit => t.hard_limit,
    p_max_attempts => 3, p_crash_limit => 3, p_backoff => '{"base": 5, "factor": 2, "cap": 300, "jitter": 0.2}',
    p_lost_backoff => true,
    -- A person watches the order, so its exceptional transitions and ends are events.
    p_audit => true, p_profile => 'studio',
    p_limits => case when t.place is not null then array['studio-user/{tenant}'] end
  )
  from studio.task_types as t
  order by t.task_type;
end;
$$;
comment on function studio.register_tasks() is 'Registers the policies of the tasks with the engine: three attempts, back-off of 5 s doubling to 300 s, at most ten running tasks per user.';

do $register$
begin
  if not exists (select from trunkline.limits as l where l.name = 'studio-user/{tenant}') then
    perform trunkline.set_limit(p_limit => 'studio-user/{tenant}', p_parts => '{"concurrency": 10}');
  end if;
  -- Operators set what their provider allows.
  if not exists (select from trunkline.limits as l where l.name = 'studio-model') then
    perform trunkline.set_limit(
      p_limit => 'studio-model', p_parts => '{"requests_per_minute": 600, "tokens_per_minute": 1000000, "concurrency": 20}'
    );
  end if;
  perform studio.register_tasks();
end
$register$;
