-- Returns which of the next p_number live workflows of child jobs, in the order of their ids after p_after, have lost their parent; at most p_limit.
-- Detached ones do not count. next is where the following call starts; null: at the beginning. has_more: it has something to do at
-- once. has_lost_parent decides again under the workflow's lock, since a job can move between two tables while this reads.
create or replace function trunkline_internal.lost_children(
  p_after uuid,
  p_number integer,
  p_limit integer,
  out ids uuid[],
  out next uuid,
  out has_more boolean
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_all uuid[];
begin
  with children as materialized (
    select w.workflow_id, w.parent_job
    from trunkline_internal.workflows as w
    where w.ended_at is null
      and w.parent_job is not null
      and not w.detached
      and w.cancel_requested_at is null
      and w.workflow_id > coalesce(p_after, '00000000-0000-0000-0000-000000000000')
    order by w.workflow_id
    limit p_number
  )
  select
    array_agg(c.workflow_id order by c.workflow_id),
    array_agg(c.workflow_id order by c.workflow_id) filter (
      where not exists (select from trunkline_internal.waiting as w where w.job_id = c.parent_job)
        and not exists (select from trunkline_internal.running as r where r.job_id = c.parent_job)
    )
  into v_all, ids
  from children as c;
  has_more := coalesce(cardinality(ids) > p_limit, false);
  ids := ids[:p_limit];
  next := case when has_more then ids[p_limit] else v_all[p_number] end;
end;
$$;
comment on function trunkline_internal.lost_children(uuid, integer, integer) is 'Returns which of the next p_number live workflows of child jobs, in the order of their ids after p_after, have lost their parent; at most p_limit.';
