select s.phase, s.script, s.sha256
from profile_schema.trunkline_profile_steps as s
where s.profile = %(profile)s
order by s.phase, s.script
