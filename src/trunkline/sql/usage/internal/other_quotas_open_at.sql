-- Tells when quotas beside the limit that a job asks for have room for its call: null for now, infinity for never as they are.
-- What its claim has charged there and nobody took over yet is room of its own. Read without their locks, since a call
-- holds one bucket at a time: so many calls at once may go beyond by what they estimate.
-- Refuses what is more than such a quota ever gives.
create or replace function trunkline_internal.other_quotas_open_at(
  p_job trunkline_internal.running,
  p_beside bigint[],
  p_need bigint[],
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
  v_part integer;
  v_room record;
begin
  for v_room in
    select r.bucket, r.allowed, r.state, r.units
    from trunkline_internal.bucket_room(
      p_buckets => array(select p_beside[i.place + 1] from generate_series(1, cardinality(p_beside), 2) as i (place)),
      p_limits => array(select p_beside[i.place]::integer from generate_series(1, cardinality(p_beside), 2) as i (place)),
      p_now => p_now
    ) as r
  loop
    v_part := trunkline_internal.quota_part(p_unit => (v_room.allowed).quota_unit);
    v_amount := p_need[v_part];
    if v_amount > (trunkline_internal.most_at_once(p_limit => v_room.allowed))[v_part] then
      perform trunkline_internal.refuse(
        p_name => 'cost_over_limit',
        p_detail => jsonb_build_object(
          'task', p_job.task, 'limit', (v_room.allowed).name, 'requests', p_need[1], 'tokens', p_need[2], 'units', p_need[3],
          'quota', (v_room.allowed).quota
        )
      );
    end if;
    if not exists (
      select
      from trunkline_internal.usage as s
      where s.job_id = p_job.job_id and s.attempt = p_job.attempt and s.bucket = v_room.bucket and s.grant_id is null
    ) then
      v_amount := v_amount - p_job.need[v_part];
      continue when v_amount <= 0;
    end if;
    -- Nothing of what is spent is too much: whoever cannot tell what a call will take goes on for ever otherwise.
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
comment on function trunkline_internal.other_quotas_open_at(trunkline_internal.running, bigint[], bigint[], timestamptz) is 'Tells when quotas beside the limit that a job asks for have room for its call: null for now, infinity for never as they are.';
