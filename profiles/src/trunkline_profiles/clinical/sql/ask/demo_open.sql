-- How many jobs are still to be done, of types that somebody serves.

select count(*)
from trunkline.jobs as j
where j.state in ('ready', 'scheduled', 'running') and j.task <> all (%(unserved)s)
