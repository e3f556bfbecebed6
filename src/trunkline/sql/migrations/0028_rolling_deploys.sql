-- why: workers with different code may serve a task during a deploy; a renamed task keeps its old name as an alias
-- breaking: no

alter table trunkline_internal.workers add column signatures jsonb;
comment on column trunkline_internal.workers.signatures is 'A fingerprint of the payload that its code takes, by task. Null: it reported none.';

alter table trunkline_internal.tasks add column alias_of text;
comment on column trunkline_internal.tasks.alias_of is 'The task whose handler runs jobs of this old name. Null: it is a name of its own.';

create type trunkline.handover as (
  job_id uuid, attempt integer, verdict text, state text, run_at timestamptz, other_worker text
);
comment on type trunkline.handover is 'Answer of hand_over for one job: its verdict, and which worker with other code it was put back for; null where none was.';

insert into trunkline_internal.job_transitions (from_state, to_state, by_function) values
  ('running', 'scheduled', 'hand_over'),
  ('running', 'dead', 'hand_over'),
  ('running', 'cancelled', 'hand_over');
