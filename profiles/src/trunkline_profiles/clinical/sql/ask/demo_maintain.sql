select clinical.enqueue_job_v3(job_type => 'system_maintenance', job_name => 'demo', job_payload => '{"limit": 100}')
