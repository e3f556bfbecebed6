-- Refuses steps whose name or key is not a text of 1 to 200 characters, results that are larger than the setting max_payload_bytes, and more than 10,000 steps of a job.
create or replace function trunkline_internal.check_recording(
  p_jobs uuid[],
  p_names text[],
  p_keys text[],
  p_places integer[],
  p_results jsonb[]
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_max_bytes integer := trunkline_internal.setting(p_name => 'max_payload_bytes')::integer;
  v_wrong record;
begin
  select
    a.job_id, a.name, a.place, pg_column_size(a.result) as bytes,
    (a.name <> '' and length(a.name) <= 200 and a.key <> '' and length(a.key) <= 200) is not true as is_misnamed
  into v_wrong
  from unnest(p_jobs, p_names, p_keys, p_places, p_results) as a (job_id, name, key, place, result)
  where (
    pg_column_size(coalesce(a.result, 'null')) <= v_max_bytes
    and a.place between 1 and 10000
    and a.name <> ''
    and length(a.name) <= 200
    and a.key <> ''
    and length(a.key) <= 200
  ) is not true
  limit 1;
  if not found then
    return;
  end if;
  if v_wrong.is_misnamed then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object(
        'argument', 'name or key of a step', 'value', left(v_wrong.name, 200), 'must_be', 'a text of 1 to 200 characters'
      )
    );
  elsif v_wrong.bytes > v_max_bytes then
    perform trunkline_internal.refuse(
      p_name => 'step_too_large',
      p_detail => jsonb_build_object(
        'job', v_wrong.job_id, 'step', v_wrong.name, 'bytes', v_wrong.bytes, 'max_bytes', v_max_bytes
      )
    );
  end if;
  perform trunkline_internal.refuse(
    p_name => 'too_many_steps',
    p_detail => jsonb_build_object('job', v_wrong.job_id, 'step', v_wrong.name, 'place', v_wrong.place, 'maximum', 10000)
  );
end;
$$;
comment on function trunkline_internal.check_recording(uuid[], text[], text[], integer[], jsonb[]) is 'Refuses steps whose name or key is not a text of 1 to 200 characters, results that are larger than the setting max_payload_bytes, and more than 10,000 steps of a job.';
