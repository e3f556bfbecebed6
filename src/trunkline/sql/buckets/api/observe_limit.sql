-- Applies a provider's rate-limit response to a limit, for all workers at once; returns until when the limit is paused, or null.
-- p_observed may have retry_after (seconds to pause; 0 ends a pause), remaining_requests and remaining_tokens with
-- reset_requests and reset_tokens (seconds until they are full again; 60 by default), and reason. Zero remaining pauses the
-- limit until the reset. Fewer remaining than our own minute has left lowers it until then, unless an hour or a quota counts
-- the same kind: those could not drop the difference in time. Numbers are accepted up to an hour. Only the filled-in name is
-- affected, not other keys of the same limit. The operator log has a pause that an operator ends.
-- A session that acts for one tenant may report on its own limits. For a shared limit it must pass the running job and
-- attempt whose call the provider answered; the job was enqueued under that limit with the same keys.
create or replace function trunkline.observe_limit(
  p_limit text,
  p_observed jsonb,
  p_keys jsonb default '{}',
  p_job uuid default null,
  p_attempt integer default null
)
returns timestamptz
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  c_fields constant text[] := array['retry_after', 'remaining_requests', 'remaining_tokens', 'reset_requests', 'reset_tokens'];
  v_found record;
  v_hold numeric;
  v_job trunkline_internal.running;
  v_now timestamptz;
  v_part text;
  v_remaining bigint;
  v_reset numeric;
  v_room record;
  v_scope text := trunkline.tenant_scope();
  v_state trunkline_internal.bucket_states;
begin
  perform trunkline_internal.require_read_committed();
  if p_limit is null or octet_length(p_limit) > 400 or pg_column_size(p_keys) > 65536
    or pg_column_size(p_observed) > 10000
    or jsonb_typeof(p_keys) is distinct from 'object' or jsonb_typeof(p_observed) is distinct from 'object'
    or p_observed - (c_fields || 'reason'::text) <> '{}'::jsonb
    or exists (
      select
      from jsonb_each(p_observed - 'reason') as o
      where case jsonb_typeof(o.value)
        when 'null' then false
        when 'number' then (o.value #>> '{}')::numeric not between 0 and 1000000000000
        else true
      end
    )
  then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object(
        'argument', 'p_observed', 'must_be', 'an object with ' || array_to_string(c_fields, ', ') || ' as numbers from 0, and reason'
      )
    );
  end if;
  if v_scope is not null and p_job is not null then
    select r.* into v_job
    from trunkline_internal.running as r
    where r.job_id = p_job and r.attempt = p_attempt and r.tenant = v_scope;
  end if;
  v_found := trunkline_internal.find_limit(p_template => p_limit, p_keys => p_keys, p_tenant => v_scope, p_job => v_job);
  perform trunkline_internal.lock_bucket(p_bucket => v_found.bucket);
  v_now := trunkline.clock();
  select r.* into v_room
  from trunkline_internal.bucket_room(
    p_buckets => array[v_found.bucket], p_limits => array[v_found.limit_id], p_now => v_now
  ) as r;
  v_state := v_room.state;
  -- Not just least(), which ignores nulls.
  v_hold := case when p_observed ->> 'retry_after' is not null then least((p_observed ->> 'retry_after')::numeric, 3600) end;
  foreach v_part in array array['requests', 'tokens'] loop
    v_remaining := floor((p_observed ->> ('remaining_' || v_part))::numeric)::bigint;
    v_reset := least(coalesce((p_observed ->> ('reset_' || v_part))::numeric, 60), 3600);
    continue when v_remaining is null or v_reset = 0;
    if v_remaining = 0 then
      v_hold := greatest(v_hold, v_reset);
    elsif (case v_part when 'requests' then (v_room.allowed).requests_per_hour else (v_room.allowed).tokens_per_hour end) is null
      and coalesce((v_room.allowed).quota_unit <> v_part, true)
      and v_remaining < (case v_part when 'requests' then v_room.requests else v_room.tokens end)
    then
      -- Charged at a second chosen so that the window drops it at the reset.
      perform trunkline_internal.adjust_bucket(
        p_bucket => v_found.bucket, p_at => floor(extract(epoch from v_now) + least(v_reset, 61))::bigint - 62,
        p_requests => case v_part when 'requests' then v_room.requests - v_remaining else 0 end,
        p_tokens => case v_part when 'tokens' then v_room.tokens - v_remaining else 0 end,
        p_units => 0
      );
    end if;
  end loop;
  if v_hold = 0 and v_state.paused_until is not null then
    if v_state.paused_until > v_now then
      perform trunkline_internal.log_action(
        p_action => 'observe_limit', p_kind => 'limit', p_object => v_found.name,
        p_before => jsonb_build_object('paused_until', v_state.paused_until, 'reason', v_state.pause_reason),
        p_after => jsonb_build_object('paused_until', null), p_reason => p_observed ->> 'reason', p_tenant => v_scope
      );
    end if;
    v_state.paused_until := null;
    v_state.pause_reason := null;
    perform trunkline_internal.write_revision(p_bucket => v_found.bucket, p_state => v_state);
    perform trunkline_internal.wake_bucket(p_bucket => v_found.bucket);
  elsif v_hold > 0 and coalesce(v_state.paused_until < v_now + make_interval(secs => v_hold::double precision), true) then
    v_state.paused_until := v_now + make_interval(secs => v_hold::double precision);
    v_state.pause_reason := left(coalesce(p_observed ->> 'reason', 'the provider asked for a pause'), 500);
    perform trunkline_internal.write_revision(p_bucket => v_found.bucket, p_state => v_state);
  end if;
  return case when v_state.paused_until > v_now then v_state.paused_until end;
end;
$$;
comment on function trunkline.observe_limit(text, jsonb, jsonb, uuid, integer) is 'Applies a provider''s rate-limit response to a limit, for all workers at once; returns until when the limit is paused, or null.';
