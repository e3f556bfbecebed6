-- The jobs of the demonstration in one row.

select
  count(*) as jobs,
  count(*) filter (where j.state = 'completed') as completed,
  count(*) filter (where j.state = 'dead') as dead,
  (select count(*) from trunkline.reclaim_history as h) as reclaimed,
  count(*) filter (where j.task like 'ai\_queue%%' and j.claimed_at - j.run_at > interval '100 milliseconds') as waited,
  coalesce(max(extract(epoch from j.claimed_at - j.run_at)) filter (where j.task like 'ai\_queue%%'), 0)::double precision as longest,
  (select count(*) from clinical.audit_log as a where a.patient_id is null and a.table_name in ('shell_files', 'clinical_records')) as unaudited,
  (select l.tokens_of_hour from trunkline.limits as l where l.name = %(endpoint)s) as charged
from trunkline.jobs as j
