-- Returns when quotas of a job's other limits have room for its call: null for now, infinity for never.
-- What the claim has charged there and no call took over yet counts as room. Read without locks, because a call holds one
-- bucket at a time: concurrent calls may exceed the quota by their estimates.
-- Refuses a cost that is more than such a quota can ever allow.
create or replace function trunkline_internal.other_quotas_open_at(
  p_job trunkline_internal.running,
  p_other_limits integer[],
  p_other_buckets bigint[],
  p_cost trunkline_internal.amounts,
  p_now timestamptz
)
returns timestamptz
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_amount bigint;
  v_opens_at timestamptz;
  v_most trunkline_internal.amounts;
  v_room record;
begin
  for v_room in
    select r.bucket, r.allowed, r.state, r.units
    from trunkline_internal.bucket_room(p_buckets => p_other_buckets, p_limits => p_other_limits, p_now => p_now) as r
  loop
    v_most := trunkline_internal.most_at_once(p_limit => v_room.allowed);
    v_amount := trunkline_internal.amount_of(
      p_unit => (v_room.allowed).quota_unit, p_requests => p_cost.requests, p_tokens => p_cost.tokens, p_units => p_cost.units
    );
    if v_amount > trunkline_internal.amount_of(
      p_unit => (v_room.allowed).quota_unit, p_requests => v_most.requests, p_tokens => v_most.tokens, p_units => v_most.units
    ) then
      perform trunkline_internal.refuse(
        p_name => 'cost_over_limit',
        p_detail => jsonb_build_object(
          'task', p_job.task, 'limit', (v_room.allowed).name, 'requests', p_cost.requests, 'tokens', p_cost.tokens,
          'units', p_cost.units, 'quota', (v_room.allowed).quota
        )
      );
    end if;
    if not exists (
      select
      from trunkline_internal.usage as s
      where s.job_id = p_job.job_id and s.attempt = p_job.attempt and s.bucket = v_room.bucket and s.grant_id is null
    ) then
      v_amount := v_amount - trunkline_internal.amount_of(
        p_unit => (v_room.allowed).quota_unit, p_requests => p_job.cost_requests, p_tokens => p_job.cost_tokens,
        p_units => p_job.cost_units
      );
      continue when v_amount <= 0;
    end if;
    -- A spent quota refuses even a cost of zero: calls with unknown costs would otherwise continue forever.
    if greatest(v_amount, 1) > v_room.units then
      v_opens_at := greatest(v_opens_at, trunkline_internal.quota_free_at(
        p_bucket => v_room.bucket, p_limit => v_room.allowed, p_state => v_room.state, p_amount => greatest(v_amount, 1),
        p_low => false, p_now => p_now
      ));
    end if;
  end loop;
  return v_opens_at;
end;
$$;
comment on function trunkline_internal.other_quotas_open_at(trunkline_internal.running, integer[], bigint[], trunkline_internal.amounts, timestamptz) is 'Returns when quotas of a job''s other limits have room for its call: null for now, infinity for never.';
