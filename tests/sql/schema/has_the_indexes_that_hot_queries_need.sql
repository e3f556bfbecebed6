-- CP-16, RC-03, RF-48, RF-49, TA-20: claims, reclaims and look-ups have partial or small indexes in the order they read.
\ir ../helpers/tools.sql
select plan(14);

create function pg_temp.index(p_name text) returns text language sql as $$
  select regexp_replace(indexdef, '^.* USING btree ', '') from pg_indexes where schemaname = 'trunkline_internal' and indexname = p_name
$$;
select is(pg_temp.index('waiting_ready'), $$(queue, lane, sequence) WHERE ((bucket IS NULL) AND (state = 'ready'::text))$$, 'claims: ready jobs by queue, priority and order');
select is(pg_temp.index('waiting_limited'), $$(bucket, queue, lane, sequence) WHERE ((bucket IS NOT NULL) AND (state = 'ready'::text))$$, 'claims: limited jobs by limit, queue, priority and order');
select is(pg_temp.index('waiting_limited_later'), $$(bucket) WHERE ((bucket IS NOT NULL) AND (state = 'scheduled'::text))$$, 'depth limits: how many wait for a limit, due or not');
select is(pg_temp.index('waiting_due'), $$(run_at) WHERE (state = 'scheduled'::text)$$, 'promotions: scheduled jobs by due time');
-- A job that can be claimed at once and was never put off is in neither.
select is(pg_temp.index('waiting_later'), $$(queue, state) WHERE (state <> 'ready'::text)$$, 'counts of scheduled jobs by queue');
select is(pg_temp.index('waiting_expiry'), '(expires_at) WHERE ((expires_at IS NOT NULL) AND (attempt = 0))', 'claims: jobs that have not started by their deadline');
select is(pg_temp.index('waiting_deferred'), '(deferred_since) WHERE (deferred_since IS NOT NULL)', 'health: deferred jobs, oldest first');
select is(pg_temp.index('running_expiry'), '(lease_expires_at)', 'reclaims: running jobs, in a table of their own, by the end of their lease');
select is(pg_temp.index('dead_by_time'), '(died_at)', 'dead letters by time');
select is(pg_temp.index('finished_by_job'), '(job_id)', 'finished jobs by id');
select is(pg_temp.index('idempotency_keys_by_expiry'), '(expires_at)', 'keys by expiry');
select indexes_are('trunkline_internal', 'waiting', array['waiting_pkey', 'waiting_ready', 'waiting_limited', 'waiting_limited_later', 'waiting_due', 'waiting_later', 'waiting_expiry', 'waiting_deferred', 'waiting_workflow'], 'no other index makes enqueue slower');
select indexes_are('trunkline_internal', 'running', array['running_pkey', 'running_expiry', 'running_workflow'], 'nor claim');
select col_is_pk('trunkline_internal', 'unique_keys', array['profile', 'tenant', 'task', 'unique_key'], 'a unique key has one holder');

select * from finish();
