select distinct m.worker
from trunkline.stale_monitor as m
join clinical.job_types as t on t.job_type = m.task
