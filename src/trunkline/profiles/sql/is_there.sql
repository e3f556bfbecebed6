select to_regclass('profile_schema.trunkline_profile_steps') is not null
