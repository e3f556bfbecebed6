-- Begins or continues a sleep or a wait for an event of a running attempt; returns whether it is over, with its outcome.
-- Outcome over or timeout: recorded as a step. Wait: the job has to be suspended, at the latest until the returned time,
-- which counts from the first wait. Cancel: the attempt has to stop.
create or replace function trunkline.begin_wait(
  p_worker text,
  p_job uuid,
  p_attempt integer,
  p_place integer,
  p_kind text,
  p_name text,
  p_key text,
  p_address text default null,
  p_timeout interval default null
)
returns trunkline.wait_answer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_answer trunkline.wait_answer;
  v_event trunkline_internal.sent_events;
  v_fault text;
  v_now timestamptz;
  v_running trunkline_internal.running;
  v_until timestamptz;
begin
  v_running := trunkline_internal.hold_attempt(p_worker => p_worker, p_job => p_job, p_attempt => p_attempt);
  v_fault := case
    when p_kind is null or p_kind not in ('sleep', 'event') then 'p_kind'
    when p_kind = 'sleep' and p_timeout is null then 'p_timeout'
    when p_timeout not between interval '0' and interval '3650 days' then 'p_timeout'
    when p_address = '' or length(p_address) > 200 then 'p_address'
  end;
  if v_fault is not null then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object(
        'argument', v_fault, 'must_be',
        case v_fault
          when 'p_kind' then 'sleep or event'
          when 'p_timeout' then 'an interval from 0 to 3650 days; null only for an event'
          else 'a text of 1 to 200 characters, or null'
        end
      )
    );
  end if;
  perform trunkline_internal.check_recording(
    p_jobs => array[p_job], p_names => array[p_name], p_keys => array[p_key], p_places => array[p_place],
    p_results => array[null::jsonb]
  );
  if v_running.cancel_requested_at is not null then
    return row('cancel', null, null, null, null)::trunkline.wait_answer;
  end if;
  v_now := trunkline.clock();
  select w.until into v_until
  from trunkline_internal.job_waits as w
  where w.job_id = p_job and w.kind = p_kind and w.name = p_name and w.key = p_key;
  if not found then
    v_until := v_now + p_timeout;
  end if;
  if p_kind = 'event' then
    v_event := trunkline_internal.event_for(
      p_job => p_job, p_tenant => v_running.tenant, p_address => p_address, p_name => p_name
    );
  end if;
  if v_event.name is not null then
    v_answer := row('over', v_until, jsonb_build_object('event', v_event.payload), null, null);
  elsif v_until <= v_now then
    v_answer := case p_kind
      when 'sleep' then row('over', v_until, null, null, null)
      else row('timeout', v_until, jsonb_build_object('timeout', v_until), null, null)
    end;
  else
    insert into trunkline_internal.job_waits (
      job_id, since, until, attempt, place, kind, name, key, tenant, address
    )
    values (p_job, v_now, v_until, p_attempt, p_place, p_kind, p_name, p_key, v_running.tenant, p_address)
    on conflict (job_id, kind, name, key) do update
    set attempt = excluded.attempt, place = excluded.place, address = excluded.address;
    return row('wait', v_until, null, null, null)::trunkline.wait_answer;
  end if;
  insert into trunkline_internal.recorded_steps (day, recorded_at, job_id, attempt, place, kind, name, key, result)
  values ((v_now at time zone 'UTC')::date, v_now, p_job, p_attempt, p_place, p_kind, p_name, p_key, v_answer.result)
  on conflict do nothing;
  delete from trunkline_internal.job_waits as w
  where w.job_id = p_job and w.kind = p_kind and w.name = p_name and w.key = p_key;
  return v_answer;
end;
$$;
comment on function trunkline.begin_wait(text, uuid, integer, integer, text, text, text, text, interval) is 'Begins or continues a sleep or a wait for an event of a running attempt; returns whether it is over, with its outcome.';
