-- For the demonstration: gives every type a TTL of seconds.

select executor.set_job_type(p_type => t.type, p_ttl => make_interval(secs => %(seconds)s), p_queue => t.queue)
from executor.executor_job_types as t
