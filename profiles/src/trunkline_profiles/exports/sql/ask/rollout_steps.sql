select
  s.plan, s.step, s.at, s.proof, s.title, r.outcome, r.dry_run, r.at as last_at, r.actor, r.evidence, r.detail
from exports.rollout_steps as s
left join lateral (
  select r.outcome, r.dry_run, r.at, r.actor, r.evidence, r.detail
  from exports.rollout_results as r
  where r.plan = s.plan and r.step = s.step
  order by r.result desc
  limit 1
) as r on true
where %(plan)s::text is null or s.plan = %(plan)s
order by s.plan, s.place
