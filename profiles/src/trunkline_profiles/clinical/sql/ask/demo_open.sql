-- The number of open jobs of types that a worker serves.

select count(*)
from trunkline.jobs as j
where j.state in ('ready', 'scheduled', 'running') and j.task <> all (%(unserved)s)
