-- Explains a job that costs more than one of its limits can ever allow: which, how much, since when, and what to do; no row for others.
-- Also explains such a job before it is set aside, and one that fits again but has not been freed yet. until is when it
-- becomes a dead letter, if its task has dead_when_deferred.
create or replace function trunkline_internal.explain_exceeded(p_job uuid, p_cost trunkline_internal.job_cost, p_task text)
returns setof trunkline.explanation
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select
    'set_aside',
    case
      when t.dead_when_deferred and o.bucket is not null
        then a.since + trunkline_internal.setting(p_name => 'max_deferral_age')::interval
    end,
    jsonb_strip_nulls(
      case
        when o.bucket is null then '{}'::jsonb
        else trunkline_internal.exceeded_detail(p_bucket => o.bucket, p_unit => o.unit, p_cost => o.cost, p_most => o.most)
      end
      || jsonb_build_object(
        'since', a.since,
        'hint', case
          when o.bucket is null then 'The job fits its limits again. The duty sweep_buckets returns it to its old place within seconds.'
          else 'Raise the limit with trunkline.set_limit and the job returns to its old place, or cancel it.'
        end
      )
    )
  from trunkline_internal.exceeded_limit(p_cost => p_cost) as o
  left join trunkline_internal.set_aside as a on a.job_id = p_job
  left join trunkline_internal.tasks as t on t.task = p_task
  where o.bucket is not null or a.job_id is not null;
end;
$$;
comment on function trunkline_internal.explain_exceeded(uuid, trunkline_internal.job_cost, text) is 'Explains a job that costs more than one of its limits can ever allow: which, how much, since when, and what to do; no row for others.';
