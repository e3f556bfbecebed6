-- Refuses a request that enqueue would refuse, but for the rules that depend on its task.
-- For functions that store a request and enqueue it later. enqueue and enqueue_set call request_fault themselves, because they
-- have the fields in variables and columns.
create or replace function trunkline_internal.check_request(p_request trunkline_internal.request)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform trunkline_internal.refuse_fault(p_fault => trunkline_internal.request_fault(
    p_max_bytes => trunkline_internal.setting(p_name => 'max_payload_bytes')::integer, p_now => trunkline.clock(),
    -- <job arguments: p_request without cost accepted>
    p_task => p_request.task, p_payload => p_request.payload, p_queue => p_request.queue, p_priority => p_request.priority,
    p_run_at => p_request.run_at, p_delay => p_request.delay, p_tenant => p_request.tenant,
    p_unique_key => p_request.unique_key, p_idempotency_key => p_request.idempotency_key,
    p_correlation_id => p_request.correlation_id, p_max_attempts => p_request.max_attempts, p_tags => p_request.tags,
    p_expires_at => p_request.expires_at
    -- </job>
  ));
end;
$$;
comment on function trunkline_internal.check_request(trunkline_internal.request) is 'Refuses a request that enqueue would refuse, but for the rules that depend on its task.';
