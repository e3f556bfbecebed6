-- What functions about jobs take and return.

-- The one list of request fields in SQL. Types and names are those of the arguments of enqueue.
create type trunkline_internal.request as (
  task text,
  payload jsonb,
  queue text,
  priority integer,
  run_at timestamptz,
  delay interval,
  tenant text,
  unique_key text,
  idempotency_key text,
  correlation_id text,
  max_attempts integer,
  tags text[],
  cost jsonb,
  accepted boolean,
  expires_at timestamptz
);
comment on type trunkline_internal.request is 'One job of a document of enqueue_many: the arguments of enqueue without the p_.';

create type trunkline.enqueued as (job_id uuid, created boolean, state text, run_at timestamptz);
comment on type trunkline.enqueued is 'Answer of enqueue: the job, whether this call made it, its state and when it is due.';

create type trunkline.enqueued_batch as (job_ids uuid[], state text, run_at timestamptz);
comment on type trunkline.enqueued_batch is 'Answer of enqueue_batch: the jobs in the order of their payloads, the state they have in common and when they are due.';

create type trunkline.claimed_job as (
  job_id uuid,
  attempt integer,
  task text,
  queue text,
  priority integer,
  payload jsonb,
  tenant text,
  correlation_id text,
  tags text[],
  failures integer,
  deferrals integer,
  max_attempts integer,
  created_at timestamptz,
  run_at timestamptz,
  claimed_at timestamptz,
  lease_expires_at timestamptz,
  hard_deadline timestamptz,
  last_error jsonb,
  "position" jsonb,
  start_by timestamptz
);
comment on type trunkline.claimed_job is 'One claimed job; the last row carries the position for the next claim when the caller gave one.';

create type trunkline.verdict as (job_id uuid, attempt integer, verdict text, state text, run_at timestamptz);
comment on type trunkline.verdict is 'The outcome for one job of a batch: ok, lost, cancel or already, its new state and when it is due again. The state of a lost one is gone if there is no such job.';

create type trunkline.handover as (
  job_id uuid, attempt integer, verdict text, state text, run_at timestamptz, other_worker text
);
comment on type trunkline.handover is 'Answer of hand_over for one job: its verdict, and which worker with other code it was put back for; null where none was.';

create type trunkline.changed_job as (job_id uuid, outcome text, state text);
comment on type trunkline.changed_job is 'What a request about one job did.';

create type trunkline.job_detail as (
  job_id uuid,
  state text,
  task text,
  queue text,
  priority integer,
  tenant text,
  payload jsonb,
  result jsonb,
  attempt integer,
  failures integer,
  crashes integer,
  deferrals integer,
  max_attempts integer,
  created_at timestamptz,
  run_at timestamptz,
  claimed_at timestamptz,
  heartbeat_at timestamptz,
  lease_expires_at timestamptz,
  hard_deadline timestamptz,
  cancel_requested_at timestamptz,
  finished_at timestamptz,
  acknowledged_at timestamptz,
  worker text,
  progress integer,
  phase text,
  message text,
  reason text,
  unique_key text,
  correlation_id text,
  retry_of uuid,
  tags text[],
  last_error jsonb,
  errors jsonb,
  expires_at timestamptz,
  error_group text
);
comment on type trunkline.job_detail is 'One job wherever it is, with its bodies and the errors of its attempts, newest last.';

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
  last_error jsonb,
  acknowledged_at timestamptz,
  expires_at timestamptz,
  error_group text
);
comment on type trunkline.listed_job is 'One job of a list: the columns of the view jobs, and of a dead letter its error group and when it was acknowledged.';

create type trunkline.job_page as (jobs trunkline.listed_job[], next uuid);
comment on type trunkline.job_page is 'One page of jobs, and the id before which the next page starts; null after the last one.';

create type trunkline.queue_size as (
  queue text,
  ready bigint,
  scheduled bigint,
  blocked bigint,
  running bigint,
  dead bigint,
  oldest_ready_at timestamptz,
  ready_tasks jsonb,
  counted_up_to integer
);
comment on type trunkline.queue_size is 'The jobs in one queue, each number counted up to counted_up_to; ready_tasks has the ready jobs by task.';

create type trunkline.explanation as (reason text, until timestamptz, detail jsonb);
comment on type trunkline.explanation is 'One reason why a job is not running, until when, and what stands behind it.';

create type trunkline_internal.move as (
  job_id uuid,
  to_state text,
  run_at timestamptz,
  failures smallint,
  crashes smallint,
  deferrals integer,
  front boolean,
  reason text,
  error jsonb,
  kind text,
  detail jsonb
);
comment on type trunkline_internal.move is 'Where one running job goes, decided by fail, snooze, release, acknowledge_cancel or reclaim and carried out by move_running.';
