-- Returns the buckets in whose lanes a job may no longer fit its limits, those of p_limit first, at most p_most (null: all).
-- Leaves out buckets whose limits count slots alone and whose jobs have no other limit.
create or replace function trunkline_internal.buckets_to_check(
  p_limit text,
  p_most integer,
  out buckets bigint[],
  out limits integer[]
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limits integer[];
begin
  v_limits := array(
    select l.limit_id
    from trunkline_internal.limits as l
    where num_nonnulls(
        (trunkline_internal.most_at_once(p_limit => l)).requests, (trunkline_internal.most_at_once(p_limit => l)).tokens,
        (trunkline_internal.most_at_once(p_limit => l)).units
      ) > 0
      -- A limit with a filled-in name is named by no task.
      or not exists (select from trunkline_internal.tasks as t where l.name = any(t.limits))
      or exists (select from trunkline_internal.tasks as t where l.name = any(t.limits) and cardinality(t.limits) > 1)
  );
  select array_agg(g.bucket), array_agg(g.limit_id)
  into buckets, limits
  from (
    select g.bucket, g.limit_id
    from (
      select distinct on (q.bucket) q.bucket, q.limit_id
      from trunkline_internal.bucket_queues as q
      order by q.bucket, q.limit_id desc
    ) as g
    join trunkline_internal.limits as l on l.limit_id = g.limit_id
    where g.limit_id = any(v_limits)
    order by l.name is distinct from p_limit
    limit p_most
  ) as g;
end;
$$;
comment on function trunkline_internal.buckets_to_check(text, integer) is 'Returns the buckets in whose lanes a job may no longer fit its limits, those of p_limit first, at most p_most (null: all).';
