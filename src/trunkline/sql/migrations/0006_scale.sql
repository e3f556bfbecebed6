-- why: the autoscaling signal needs to remember what it wanted, so that it does not fall with every dip of the backlog
-- breaking: no

create table trunkline_internal.worker_targets (
  queue text not null,
  tasks text[] not null,
  wanted integer not null check (wanted >= 0),
  low_since timestamptz,
  decided_at timestamptz not null,
  constraint worker_targets_pkey primary key (queue, tasks)
);
comment on table trunkline_internal.worker_targets is 'How many worker processes were last wanted for each queue and set of tasks. The duty decide_workers writes it.';
comment on column trunkline_internal.worker_targets.tasks is 'The tasks that the workers serve, sorted; empty for all tasks.';
comment on column trunkline_internal.worker_targets.low_since is 'Since when fewer than scale_down_pending jobs could start while fewer workers would do.';
alter table trunkline_internal.worker_targets enable row level security, force row level security;
create policy owner_rows on trunkline_internal.worker_targets to trunkline_owner using (true) with check (true);

create type trunkline.worker_target as (
  queue text,
  tasks text[],
  wanted integer,
  workers integer,
  startable bigint,
  running bigint,
  low_since timestamptz,
  counted_up_to integer
);
comment on type trunkline.worker_target is 'How many worker processes are wanted for a queue and a set of tasks, and from what that follows. tasks is null for all tasks.';

insert into trunkline_internal.settings (name, kind, default_value, minimum, maximum, description) values
  ('scale_down_after', 'interval', '10 minutes', '0 seconds', '7 days',
    'How long fewer than scale_down_pending jobs must be able to start before fewer workers are wanted.'),
  ('scale_down_pending', 'integer', '20', '1', '10000', 'With fewer jobs that can start than this, fewer workers may be wanted.'),
  ('scale_jobs_per_worker', 'integer', '100', '1', '10000',
    'One worker is wanted for so many jobs that can start, once they are more than scale_up_pending.'),
  ('scale_max_workers', 'integer', '10', '1', '10000', 'The most workers that are wanted for a queue and a set of tasks.'),
  ('scale_min_workers', 'integer', '1', '0', '10000',
    'The fewest workers that are wanted for a queue and a set of tasks; 0 allows none.'),
  ('scale_up_pending', 'integer', '100', '0', '9999',
    'With more jobs that can start than this, at least scale_up_workers are wanted.'),
  ('scale_up_workers', 'integer', '5', '1', '10000',
    'How many workers are wanted at least with more than scale_up_pending jobs that can start.');

insert into trunkline_internal.duties (duty, every, run_order, builtin, needs_all_tenants, function, description) values
  ('decide_workers', '15 seconds', 10, true, true, 'trunkline_internal.duty_decide_workers',
    'Stores how many workers are wanted, so that a short dip of the backlog does not lower it, and logs changes.');
