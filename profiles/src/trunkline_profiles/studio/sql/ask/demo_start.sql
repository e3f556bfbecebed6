select s.job_id from studio.start_job(p_type => 'nuclear_v2', p_params => %(params)s, p_user_id => %(user)s) as s
