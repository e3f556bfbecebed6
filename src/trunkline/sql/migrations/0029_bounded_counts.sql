-- why: operator views and checks read the whole backlog to count it: health took 20 s and the list of queues 5 s with two million waiting jobs
-- breaking: no

-- squawk-ignore-file require-concurrent-index-creation
create index waiting_later on trunkline_internal.waiting (queue, state) where state <> 'ready';
create index waiting_deferred on trunkline_internal.waiting (deferred_since) where deferred_since is not null;
create index dead_by_queue on trunkline_internal.dead (queue);
create index dead_unseen on trunkline_internal.dead (died_at) where acknowledged_at is null;
-- Both tables are appended to in the order of time, so the range of each 128 pages is enough to find a time. A B-tree would
-- add an entry for every completion.
create index finished_by_time on trunkline_internal.finished using brin (finished_at) with (autosummarize = on);
create index events_lost on trunkline_internal.events (at) where kind = 'lost';
create index events_by_time on trunkline_internal.events using brin (at) with (autosummarize = on);

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

create type trunkline.job_page as (jobs trunkline.listed_job[], next uuid);
comment on type trunkline.job_page is 'One page of jobs, and the id before which the next page starts; null after the last one.';

comment on type trunkline.verdict is 'The outcome for one job of a batch: ok, lost, cancel or already, its new state and when it is due again. The state of a lost one is gone if there is no such job.';
