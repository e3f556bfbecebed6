-- Revokes all privileges, then grants each function to the roles that may call it. Runs last, at every upgrade.

revoke all on schema trunkline, trunkline_internal from public;
revoke all on all tables in schema trunkline, trunkline_internal from public;
revoke all on all sequences in schema trunkline_internal from public;
revoke all on all functions in schema trunkline, trunkline_internal from public;
revoke all on all tables in schema trunkline from trunkline_producer, trunkline_worker, trunkline_operator, trunkline_reader;
revoke all on all functions in schema trunkline from trunkline_producer, trunkline_worker, trunkline_operator, trunkline_reader;
revoke all on all tables in schema trunkline_internal from trunkline_producer, trunkline_worker, trunkline_operator, trunkline_reader;
revoke all on all functions in schema trunkline_internal from trunkline_producer, trunkline_worker, trunkline_operator, trunkline_reader;

grant usage on schema trunkline to trunkline_producer, trunkline_worker, trunkline_operator, trunkline_reader;

grant execute on function
  trunkline.clock(),
  trunkline.schema_release(),
  trunkline.schema_version(),
  trunkline.tenant_scope()
to trunkline_producer, trunkline_worker, trunkline_operator, trunkline_reader;

-- Produce: calls of an application about its own jobs.
grant execute on function
  trunkline.enqueue(
    text, jsonb, text, integer, timestamptz, interval, text, text, text, text, integer, text[], jsonb, boolean, timestamptz
  ),
  trunkline.enqueue_batch(text, jsonb),
  trunkline.enqueue_many(jsonb),
  trunkline.cancel(uuid, text),
  trunkline.cancel_workflow(uuid, text),
  trunkline.delete_artifact(uuid, text),
  trunkline.reprioritise(uuid, integer),
  trunkline.send_event(text, jsonb, uuid, text, text, text),
  trunkline.start_workflow(jsonb)
to trunkline_producer, trunkline_operator;

grant execute on function
  trunkline.register_task(
    text, text, interval, interval, integer, jsonb, boolean, integer, text, integer, boolean, boolean, boolean, text, text[], jsonb
  ),
  trunkline.register_tasks(jsonb)
to trunkline_producer, trunkline_worker, trunkline_operator;

-- Provider calls, inside or outside a job.
grant execute on function
  trunkline.acquire(text, jsonb, jsonb, uuid, integer, interval, text),
  trunkline.observe_limit(text, jsonb, jsonb, uuid, integer),
  trunkline.settle(uuid, jsonb)
to trunkline_producer, trunkline_worker, trunkline_operator;

-- Work: calls of a worker about the jobs that it has claimed. It cannot read any other job.
grant execute on function
  trunkline.abandon_artifact(text, uuid, integer, uuid),
  trunkline.acknowledge_cancel(text, uuid[], integer[], text[]),
  trunkline.artifact_upload(text, uuid, integer, uuid),
  trunkline.begin_artifact(text, uuid, integer, text, text, text, bigint, text, text),
  trunkline.begin_jobs(text, uuid, integer, integer, text, jsonb, boolean),
  trunkline.begin_once(text, uuid, integer, integer, text),
  trunkline.begin_wait(text, uuid, integer, integer, text, text, text, text, interval),
  trunkline.child_results(text, uuid, integer, uuid, text, integer, integer),
  trunkline.claim(text, text[], integer, text[], jsonb, integer),
  trunkline.complete(text, uuid[], integer[], jsonb[], boolean),
  trunkline.dependency_results(text, uuid, integer, text, integer, integer),
  trunkline.emit(text, uuid[], integer[], integer[], text[]),
  trunkline.fail(text, uuid[], integer[], jsonb[], boolean[], interval[]),
  trunkline.hand_over(text, uuid[], integer[], jsonb[]),
  trunkline.heartbeat(text, uuid[], integer[]),
  trunkline.job_workflow(text, uuid, integer),
  trunkline.progress(text, uuid, integer, integer, text, text),
  trunkline.pulse(text, jsonb),
  trunkline.record_once(text, uuid, integer, text, jsonb),
  trunkline.record_steps(text, uuid[], integer[], integer[], text[], text[], bigint[], jsonb[]),
  trunkline.recorded_steps(text, uuid, integer),
  trunkline.register_worker(text, text[], text[], text, integer, text, interval, jsonb),
  trunkline.release(text, uuid[], integer[], text, boolean),
  trunkline.release_forgotten(text, uuid[]),
  trunkline.reserve_storage(text, uuid, integer, uuid, bigint),
  trunkline.settle_job(uuid, integer, jsonb),
  trunkline.sleep(text, text[]),
  trunkline.snooze(text, uuid[], integer[], interval[], text, boolean),
  trunkline.stage_artifact(text, uuid, integer, text, bigint, text, double precision),
  trunkline.stage_elements(text, uuid, integer, uuid, integer, integer, jsonb),
  trunkline.stop_worker(text),
  trunkline.suspend(text, uuid[], integer[]),
  trunkline.wake(text)
to trunkline_worker;

-- The sweep of the store: any worker with a store does it, and an operator may.
grant execute on function
  trunkline.artifacts_to_check(text, integer),
  trunkline.report_checked(text, uuid, uuid[], uuid[]),
  trunkline.report_files(text, text[], text),
  trunkline.report_removals(text, text[], text[]),
  trunkline.storage_installation(),
  trunkline.take_removals(text, integer),
  trunkline.take_sweep(text)
to trunkline_worker, trunkline_operator;

-- Duties: any worker or operator runs them.
grant execute on function
  trunkline.maintain_partitions(),
  trunkline.promote(integer),
  trunkline.reclaim(integer),
  trunkline.run_duties(),
  trunkline.run_duty(text),
  trunkline.run_schedules(integer),
  trunkline.sweep_artifacts(integer),
  trunkline.sweep_buckets(integer),
  trunkline.sweep_idempotency(integer)
to trunkline_worker, trunkline_operator;

-- Administer. Nobody but members of trunkline_owner may call add_duty and remove_duty: a duty runs with the owner's rights.
grant execute on function
  trunkline.acknowledge(uuid),
  trunkline.acknowledge_jobs(jsonb, integer, text, boolean),
  trunkline.adopt_schedule(text, text),
  trunkline.after_restore(),
  trunkline.age_queue(text, boolean),
  trunkline.cancel_jobs(jsonb, text, integer, text, boolean),
  trunkline.create_service_key(text, text, text, text, text, timestamptz),
  trunkline.delete_workflow(uuid),
  trunkline.discard(uuid, text),
  trunkline.discard_jobs(jsonb, text, integer, text, boolean),
  trunkline.drain_worker(text),
  trunkline.enable_duty(text, boolean),
  trunkline.limit_queue(text, integer),
  trunkline.pause_queue(text, text, boolean),
  trunkline.pause_schedule(text),
  trunkline.remove_schedule(text),
  trunkline.reprioritise_jobs(jsonb, integer, integer, text, boolean),
  trunkline.rerun_workflow(uuid, text),
  trunkline.reset_breaker(text),
  trunkline.reset_step(uuid, text, text, text),
  trunkline.resume_queue(text),
  trunkline.resume_schedule(text),
  trunkline.retry(uuid),
  trunkline.retry_edited(uuid, jsonb),
  trunkline.retry_fresh(uuid),
  trunkline.retry_jobs(jsonb, integer, text, boolean),
  trunkline.retry_workflow(uuid),
  trunkline.revoke_service_key(text, text),
  trunkline.set_artifact_retention(text, interval),
  trunkline.set_limit(text, jsonb, text, text),
  trunkline.set_schedule(text, text, text, jsonb, text, text, integer, text, text, boolean),
  trunkline.set_setting(text, text),
  trunkline.set_storage_quota(text, bigint),
  trunkline.trip_breaker(text, text, interval),
  trunkline.use_service_key(text)
to trunkline_operator;

-- Read.
grant execute on function
  trunkline.artifact(uuid),
  trunkline.count_jobs(jsonb),
  trunkline.explain(uuid),
  trunkline.find_jobs(text[], text, text, text, integer, uuid),
  trunkline.find_workflows(text[], text[], text, integer, uuid),
  trunkline.follow(uuid[]),
  trunkline.job(uuid),
  trunkline.job_steps(uuid),
  trunkline.list_artifacts(uuid, uuid, text, text, boolean, integer, uuid),
  trunkline.list_jobs(text[], text, text, text, integer, uuid),
  trunkline.live_jobs(uuid[], integer[], integer[]),
  trunkline.live_workflows(uuid[]),
  trunkline.resolve_job(text, integer),
  trunkline.search_jobs(jsonb, integer, text),
  trunkline.workflow_jobs(uuid, text, text[], integer, integer),
  trunkline.workflow_progress(uuid),
  trunkline.workflow_results(uuid, text, integer, integer)
to trunkline_producer, trunkline_operator, trunkline_reader;

grant execute on function
  trunkline.dead_letter_groups(jsonb, integer),
  trunkline.deferred_jobs(integer),
  trunkline.queue_sizes(text[]),
  trunkline.recent_activity(timestamptz, text, text, integer),
  trunkline.usage_of_job(uuid),
  trunkline.worker_targets()
to trunkline_operator, trunkline_reader;

grant execute on function
  trunkline.health()
to trunkline_worker, trunkline_operator, trunkline_reader;

grant execute on function
  trunkline.next_due(text, text, timestamptz, integer)
to trunkline_producer, trunkline_operator, trunkline_reader;

grant select on
  trunkline.artifacts, trunkline.jobs, trunkline.once_steps, trunkline.storage, trunkline.workflow_steps, trunkline.workflows
to trunkline_producer, trunkline_operator, trunkline_reader;
grant select on trunkline.settings, trunkline.tasks to trunkline_producer, trunkline_worker, trunkline_operator, trunkline_reader;
grant select on
  trunkline.artifact_kinds,
  trunkline.breakers,
  trunkline.dead_letters,
  trunkline.duties,
  trunkline.events,
  trunkline.file_removals,
  trunkline.buckets,
  trunkline.limits,
  trunkline.operator_log,
  trunkline.queues,
  trunkline.quotas,
  trunkline.reclaim_history,
  trunkline.schedules,
  trunkline.usage,
  trunkline.stale_monitor,
  trunkline.stale_validation,
  trunkline.store_sweep,
  trunkline.throughput,
  trunkline.wanted_workers,
  trunkline.workers
to trunkline_operator, trunkline_reader;

-- Keys of the HTTP API.
grant select on trunkline.service_keys to trunkline_operator;

-- Tenant roles of earlier releases may call list_jobs. Clients also need schema_version and the other functions that read
-- jobs, so an upgrade grants them.
do $tenants$
declare
  v_role text;
begin
  for v_role in
    select r.rolname
    from pg_catalog.pg_proc as p
    cross join lateral aclexplode(p.proacl) as a
    join pg_catalog.pg_roles as r on r.oid = a.grantee
    where p.oid = 'trunkline.list_jobs(text[], text, text, text, integer, uuid)'::regprocedure
      and a.privilege_type = 'EXECUTE'
      and a.grantee <> p.proowner
      and r.rolname not in ('trunkline_producer', 'trunkline_worker', 'trunkline_operator', 'trunkline_reader')
  loop
    execute format(
      'grant execute on function trunkline.count_jobs(jsonb), '
      'trunkline.find_jobs(text[], text, text, text, integer, uuid), trunkline.job_steps(uuid), '
      'trunkline.resolve_job(text, integer), '
      'trunkline.schema_version(), trunkline.search_jobs(jsonb, integer, text) to %I',
      v_role
    );
  end loop;
end
$tenants$;
