select distinct m.worker
from trunkline.stale_monitor as m
where m.task = 'export_document'
