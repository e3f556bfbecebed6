-- why: thousands of jobs of one task that say nothing but their payloads take a third less work when the answer is one value
-- breaking: no

create type trunkline.enqueued_batch as (job_ids uuid[], state text, run_at timestamptz);
comment on type trunkline.enqueued_batch is 'Answer of enqueue_batch: the jobs in the order of their payloads, the state they have in common and when they are due.';
