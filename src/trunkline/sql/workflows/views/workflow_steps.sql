-- Steps of workflows in the order of their graph, with the names of the steps that they wait for and how many of their jobs have ended.
-- items is null for a map whose source has not completed.
create or replace view trunkline.workflow_steps with (security_barrier = true) as
select
  s.workflow_id, s.place, s.name, s.kind, s.task, s.phase, s.state, s.reason, s.items,
  (
    select count(*)::integer
    from trunkline_internal.workflow_ends as e
    where e.workflow_id = s.workflow_id and e.step = s.place and e.state = 'completed'
  ) as completed,
  (
    select count(*)::integer
    from trunkline_internal.workflow_ends as e
    where e.workflow_id = s.workflow_id and e.step = s.place and e.state <> 'completed'
  ) as not_completed,
  (
    select array_agg(d.name order by d.place)
    from trunkline_internal.workflow_steps as d
    where d.workflow_id = s.workflow_id and d.place = any(s.after)
  ) as after,
  (
    select d.name from trunkline_internal.workflow_steps as d where d.workflow_id = s.workflow_id and d.place = s.map_over
  ) as map_over,
  s.ended_at, s.result_of
from trunkline_internal.workflow_steps as s
join trunkline_internal.workflows as w on w.workflow_id = s.workflow_id
where (select trunkline.tenant_scope() is null) or w.tenant = (select trunkline.tenant_scope());
comment on view trunkline.workflow_steps is 'Steps of workflows in the order of their graph, with the names of the steps that they wait for and how many of their jobs have ended.';
