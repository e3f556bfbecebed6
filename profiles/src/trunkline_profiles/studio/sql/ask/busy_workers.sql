select distinct m.worker
from trunkline.stale_monitor as m
join studio.task_types as t on t.task_type = m.task
