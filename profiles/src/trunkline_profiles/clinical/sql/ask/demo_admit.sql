insert into clinical.user_profiles (full_name) values (%(name)s) returning id
