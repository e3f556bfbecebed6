-- Drops the heartbeat function, once no worker calls it.

drop function if exists executor.update_job_heartbeat(uuid, text, integer);
