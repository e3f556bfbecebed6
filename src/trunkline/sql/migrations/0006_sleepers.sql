-- why: workers without work ask to be notified, so that nobody has to poll quickly and enqueue notifies only who sleeps
-- breaking: no

-- Unlogged: a flag and no record. Setting it waits for no flush of the log, and what a crash loses
-- costs each sleeping worker one poll.
create unlogged table trunkline_internal.sleepers (
  queue text not null check (queue <> '' and length(queue) <= 200),
  worker text not null check (worker <> '' and length(worker) <= 200),
  constraint sleepers_pkey primary key (queue, worker)
);
comment on table trunkline_internal.sleepers is 'Workers that are idle and want to be notified about new jobs of a queue; the queue * stands for all.';
alter table trunkline_internal.sleepers enable row level security, force row level security;
create policy owner_rows on trunkline_internal.sleepers to trunkline_owner using (true) with check (true);

-- It answers with one more column, which create or replace cannot do. Internal: no client calls it.
-- squawk-ignore ban-drop-function
drop function if exists trunkline_internal.promote_due(timestamptz, timestamptz, integer);

create type trunkline.listed_job as (
  job_id uuid,
  state text,
  task text,
  queue text,
  priority integer,
  tenant text,
  attempt integer,
  failures integer,
  max_attempts integer,
  deferrals integer,
  created_at timestamptz,
  run_at timestamptz,
  claimed_at timestamptz,
  heartbeat_at timestamptz,
  lease_expires_at timestamptz,
  cancel_requested_at timestamptz,
  finished_at timestamptz,
  worker text,
  progress integer,
  phase text,
  message text,
  reason text,
  unique_key text,
  correlation_id text,
  retry_of uuid,
  tags text[],
  last_error jsonb
);
comment on type trunkline.listed_job is 'One job of a list, with the columns of the view jobs.';
