-- Refuses a worker's batch call that names no worker, has arrays of different lengths, or runs above READ COMMITTED.
create or replace function trunkline_internal.check_batch(p_worker text, p_jobs uuid[], p_attempts integer[], p_others integer[])
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wrong boolean;
begin
  if p_worker is null or p_worker = '' or length(p_worker) > 200 then
    perform trunkline_internal.refuse(p_name => 'worker_required', p_detail => '{}');
  end if;
  -- A case expression, because array_position does not accept multidimensional arrays.
  v_wrong := case
    when p_jobs is null or array_ndims(p_jobs) > 1 or array_ndims(p_attempts) > 1 then true
    when cardinality(p_jobs) is distinct from cardinality(p_attempts) then true
    when array_position(p_jobs, null) is not null or array_position(p_attempts, null) is not null then true
    else coalesce(cardinality(p_jobs) <> any(array_remove(p_others, null)), false)
  end;
  if v_wrong then
    perform trunkline_internal.refuse(
      p_name => 'array_length_mismatch',
      p_detail => jsonb_build_object(
        'jobs', cardinality(p_jobs), 'attempts', cardinality(p_attempts), 'others', array_remove(p_others, null)
      )
    );
  end if;
  -- A claim returns at most 10000 jobs.
  if cardinality(p_jobs) > 10000 then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_jobs', 'must_be', 'at most 10000 jobs', 'jobs', cardinality(p_jobs))
    );
  end if;
  perform trunkline_internal.require_read_committed();
end;
$$;
comment on function trunkline_internal.check_batch(text, uuid[], integer[], integer[]) is 'Refuses a worker''s batch call that names no worker, has arrays of different lengths, or runs above READ COMMITTED.';
