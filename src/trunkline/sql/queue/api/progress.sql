-- Records the progress of a running attempt, which never decreases within an attempt. Returns ok, cancel or lost.
-- running -> running. Locks the row. If it returns cancel, it records that with the attempt; see heartbeat.
create or replace function trunkline.progress(
  p_worker text,
  p_job uuid,
  p_attempt integer,
  p_percent integer default null,
  p_message text default null,
  p_phase text default null
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_cancel boolean;
  v_now timestamptz := trunkline.clock();
  v_scope text := trunkline.tenant_scope();
begin
  perform trunkline_internal.check_batch(
    p_worker => p_worker, p_jobs => array[p_job], p_attempts => array[p_attempt], p_others => '{}'
  );
  if p_percent not between 0 and 100 then
    perform trunkline_internal.refuse(
      p_name => 'limit_out_of_range',
      p_detail => jsonb_build_object('percent', p_percent, 'minimum', 0, 'maximum', 100)
    );
  end if;
  update trunkline_internal.running as r
  set
    progress = greatest(r.progress, p_percent),
    message = coalesce(left(p_message, 500), r.message),
    phase = coalesce(left(p_phase, 100), r.phase),
    cancel_answered_at = case
      when r.cancel_requested_at is not null then coalesce(r.cancel_answered_at, v_now)
    end
  where r.job_id = p_job
    and r.attempt = p_attempt
    and r.worker = p_worker
    and (v_scope is null or r.tenant = v_scope)
  returning r.cancel_requested_at is not null into v_cancel;
  if v_cancel is not null and exists (select from trunkline_internal.followed) then
    perform trunkline_internal.notify_followers(p_ids => array[p_job]);
  end if;
  return case when v_cancel is null then 'lost' when v_cancel then 'cancel' else 'ok' end;
end;
$$;
comment on function trunkline.progress(text, uuid, integer, integer, text, text) is 'Records the progress of a running attempt, which never decreases within an attempt. Returns ok, cancel or lost.';
