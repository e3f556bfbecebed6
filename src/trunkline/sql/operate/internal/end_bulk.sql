-- Returns the result of a bulk function, and appends its one line to the operator log if a job matched.
create or replace function trunkline_internal.end_bulk(
  p_action text,
  p_filter jsonb,
  p_matches trunkline_internal.job_matches,
  p_outcomes jsonb,
  p_changed uuid[],
  p_change jsonb default '{}',
  p_reason text default null
)
returns trunkline.bulk_change
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_filter jsonb := jsonb_strip_nulls(coalesce(p_filter, '{}'));
  v_jobs integer := cardinality(p_matches.job_ids);
  v_outcomes jsonb;
begin
  select coalesce(jsonb_object_agg(o.key, o.value), '{}') into v_outcomes from jsonb_each(p_outcomes) as o where o.value <> '0';
  if v_jobs > 0 then
    if v_filter ? 'job_ids' then
      v_filter := jsonb_set(v_filter, '{job_ids}', to_jsonb(jsonb_array_length(v_filter -> 'job_ids')));
    end if;
    perform trunkline_internal.log_action(
      p_action => p_action, p_kind => 'jobs', p_object => null, p_before => jsonb_build_object('filter', v_filter),
      p_after => p_change || jsonb_build_object('jobs', v_jobs, 'outcomes', v_outcomes), p_reason => p_reason,
      p_tenant => coalesce(trunkline.tenant_scope(), v_filter ->> 'tenant')
    );
  end if;
  return row(
    v_jobs, v_outcomes, coalesce(p_changed, '{}'), trunkline_internal.cursor_of(p_before => p_matches.next)
  )::trunkline.bulk_change;
end;
$$;
comment on function trunkline_internal.end_bulk(text, jsonb, trunkline_internal.job_matches, jsonb, uuid[], jsonb, text) is 'Returns the result of a bulk function, and appends its one line to the operator log if a job matched.';
