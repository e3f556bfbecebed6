select r.plan, r.step, r.dry_run, r.outcome, r.detail, r.evidence, r.at, r.actor
from exports.run_step(
  p_plan => %(plan)s, p_step => %(step)s, p_dry_run => %(dry_run)s, p_evidence => %(evidence)s, p_problems => %(problems)s::text[]
) as r
