-- The register of refusals: code, name, constant message and hint, one row each.
-- errors.py and sql/README.md hold the same set; a test compares the three.
create or replace function trunkline_internal.refusals()
returns table (code text, name text, message text, hint text)
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  values
    ('TL001', 'unknown_task', 'unknown task', 'Register the task with trunkline.register_task, or set allow_unknown_tasks to true. The detail lists the known tasks.'),
    ('TL002', 'payload_not_object', 'payload is not a JSON object', 'Pass a JSON object, for example {"name": "you"}.'),
    ('TL003', 'payload_too_large', 'payload or result is too large', 'Store large content elsewhere and pass a reference, or raise the setting max_payload_bytes.'),
    ('TL004', 'negative_delay', 'delay is negative', 'Pass a delay of zero or more.'),
    ('TL005', 'priority_out_of_range', 'priority is out of range', 'Pass a whole number from -50 to 49; the larger one goes first.'),
    ('TL006', 'limit_out_of_range', 'limit is out of range', 'Pass a whole number within the range named in the detail.'),
    ('TL007', 'worker_required', 'worker is null or empty', 'Pass the name of the worker process, unique per start, of at most 200 characters.'),
    ('TL008', 'array_length_mismatch', 'arrays differ in length', 'Pass one attempt, and where given one result, error or delay, for each job, in the same order, without nulls among jobs and attempts.'),
    ('TL009', 'stale_attempt', 'the attempt is no longer yours', 'Stop the work and discard its result: another attempt owns the job or it has ended.'),
    ('TL010', 'queue_paused', 'queue is paused and refuses new jobs', 'Wait until an operator resumes the queue with trunkline.resume_queue.'),
    ('TL011', 'queue_full', 'queue is full', 'Enqueue later, or raise max_depth with trunkline.limit_queue.'),
    ('TL012', 'invalid_cron', 'cron expression is not valid', 'Use five fields (minute hour day month weekday) or an alias such as @daily. The detail names the field.'),
    ('TL013', 'server_too_old', 'server is older than PostgreSQL 15', 'Upgrade the server to PostgreSQL 15 or newer.'),
    ('TL014', 'schema_newer_than_client', 'schema is newer than this client', 'Upgrade the trunkline package to the version that installed the schema, or newer.'),
    ('TL015', 'unknown_job', 'unknown job', 'Check the id. Finished jobs are removed after the retention time, and jobs of other tenants are not shown.'),
    ('TL016', 'isolation_level', 'transaction isolation is above READ COMMITTED', 'Call this function in a READ COMMITTED transaction: a held snapshot would make it decide on old rows.'),
    ('TL017', 'tenant_denied', 'tenant is not the caller''s', 'Leave the tenant out, or pass the tenant this session acts for.'),
    ('TL018', 'unique_key_held', 'unique key is held by another job', 'Wait for the job named in the detail to end, or cancel it.'),
    ('TL019', 'wrong_state', 'the job is not in a state that allows this', 'The detail names the state of the job and the states in which this can be done.'),
    ('TL020', 'unknown_setting', 'unknown setting', 'The detail lists the known settings.'),
    ('TL021', 'invalid_setting', 'value does not fit the setting', 'Pass a value of the type and within the range named in the detail.'),
    ('TL022', 'invalid_policy', 'task policy is not valid', 'The detail names the argument and what it must be.'),
    ('TL023', 'unknown_time_zone', 'unknown time zone', 'Pass a name of pg_timezone_names, for example Europe/Paris.'),
    ('TL024', 'unknown_schedule', 'unknown schedule', 'The detail lists the known schedules.'),
    ('TL025', 'unknown_worker', 'unknown worker', 'Register the worker with trunkline.register_worker first.'),
    ('TL026', 'unknown_queue', 'unknown queue', 'The detail lists the queues that are paused, limited or hold jobs.'),
    ('TL027', 'idempotency_mismatch', 'idempotency key was used for another task', 'Use a new key for a new request.'),
    ('TL028', 'invalid_argument', 'argument is not valid', 'The detail names the argument and what it must be.'),
    ('TL029', 'unknown_duty', 'unknown duty', 'The detail lists the known duties.')
$$;
comment on function trunkline_internal.refusals() is 'The register of refusals: code, name, constant message and hint, one row each.';
