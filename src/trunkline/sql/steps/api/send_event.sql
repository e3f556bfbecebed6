-- Sends an event to a job, or to a key that jobs wait for, and resumes the jobs that wait for it; the first event of a name wins.
-- blocked | scheduled -> ready for each suspended job that waits for it. Outcome: delivered, if it resumed a job; stored,
-- if no job waits for it yet; already, if an event of this name was sent there before.
-- Takes the lock of the event, then rows of waiting in id order.
create or replace function trunkline.send_event(
  p_name text,
  p_payload jsonb default null,
  p_job uuid default null,
  p_key text default null,
  p_event_id text default null,
  p_tenant text default null
)
returns trunkline.sent_event
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  c_max_bytes constant integer := 65536;
  v_earlier trunkline_internal.sent_events;
  v_fault text;
  v_now timestamptz;
  v_payload jsonb := coalesce(p_payload, 'null'::jsonb);
  v_resumed integer;
  v_scope text := trunkline.tenant_scope();
  v_state text;
  v_tenant text;
begin
  perform trunkline_internal.require_read_committed();
  v_fault := case
    when coalesce(p_name, '') = '' or length(p_name) > 200 then 'p_name'
    when num_nonnulls(p_job, p_key) <> 1 or p_key = '' or length(p_key) > 200 then 'p_key'
    when p_event_id = '' or length(p_event_id) > 200 then 'p_event_id'
  end;
  if v_fault is not null then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object(
        'argument', v_fault, 'must_be',
        case v_fault when 'p_key' then 'a key of 1 to 200 characters, or null with p_job' else 'a text of 1 to 200 characters' end
      )
    );
  end if;
  if pg_column_size(v_payload) > c_max_bytes then
    perform trunkline_internal.refuse(
      p_name => 'event_too_large',
      p_detail => jsonb_build_object('event', p_name, 'bytes', pg_column_size(v_payload), 'max_bytes', c_max_bytes)
    );
  end if;
  if p_job is null then
    v_tenant := trunkline_internal.scoped_tenant(p_tenant => p_tenant);
  else
    v_state := trunkline_internal.visible_live_state(p_job => p_job, p_scope => v_scope);
    if v_state is null then
      perform trunkline_internal.refuse_state(
        p_job => p_job, p_state => trunkline_internal.visible_end(p_job => p_job, p_scope => v_scope),
        p_allowed => array['ready', 'scheduled', 'blocked', 'running']
      );
    end if;
  end if;
  perform pg_advisory_xact_lock(1953657500, trunkline_internal.wait_lock(
    p_job => p_job, p_tenant => v_tenant, p_address => p_key, p_scope => null, p_name => p_name
  ));
  v_earlier := trunkline_internal.event_for(p_job => p_job, p_tenant => v_tenant, p_address => p_key, p_name => p_name);
  if v_earlier.name is not null then
    if v_earlier.event_id = p_event_id and v_earlier.payload <> v_payload then
      perform trunkline_internal.refuse(
        p_name => 'event_mismatch',
        p_detail => jsonb_build_object('event', p_name, 'event_id', p_event_id, 'sent_at', v_earlier.sent_at)
      );
    end if;
    return row('already', 0, v_earlier.sent_at)::trunkline.sent_event;
  end if;
  v_now := trunkline.clock();
  insert into trunkline_internal.sent_events (sent_at, job_id, tenant, address, name, event_id, payload)
  values (v_now, p_job, v_tenant, p_key, p_name, p_event_id, v_payload);
  v_resumed := trunkline_internal.resume_jobs(
    p_jobs => array(
      select w.job_id
      from trunkline_internal.job_waits as w
      where w.kind = 'event'
        and w.name = p_name
        and (
          (p_job is not null and w.job_id = p_job and w.address is null)
          or (p_key is not null and w.address = p_key and coalesce(w.tenant, '') = coalesce(v_tenant, ''))
        )
    ),
    p_cause => 'event ' || p_name
  );
  if p_job is not null and v_resumed = 0 then
    -- The job may have ended while this call waited for its row.
    v_state := trunkline_internal.visible_live_state(p_job => p_job, p_scope => v_scope);
    if v_state is null then
      perform trunkline_internal.refuse_state(
        p_job => p_job, p_state => trunkline_internal.visible_end(p_job => p_job, p_scope => v_scope),
        p_allowed => array['ready', 'scheduled', 'blocked', 'running']
      );
    end if;
  end if;
  perform trunkline_internal.log_action(
    p_action => 'send_event', p_kind => 'event', p_object => coalesce(p_job::text, p_key), p_before => null,
    p_after => jsonb_build_object(
      'event', p_name, 'resumed', v_resumed, 'payload_sha256', encode(sha256(convert_to(v_payload::text, 'UTF8')), 'hex')
    ),
    p_tenant => case
      when p_job is null then v_tenant
      when trunkline_internal.is_operator() then (
        select j.tenant
        from (
          select w.tenant from trunkline_internal.waiting as w where w.job_id = p_job
          union all
          select r.tenant from trunkline_internal.running as r where r.job_id = p_job
        ) as j
        limit 1
      )
    end
  );
  return row(case when v_resumed > 0 then 'delivered' else 'stored' end, v_resumed, v_now)::trunkline.sent_event;
end;
$$;
comment on function trunkline.send_event(text, jsonb, uuid, text, text, text) is 'Sends an event to a job, or to a key that jobs wait for, and resumes the jobs that wait for it; the first event of a name wins.';
