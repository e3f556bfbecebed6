select distinct s.profile from profile_schema.trunkline_profile_steps as s order by 1
