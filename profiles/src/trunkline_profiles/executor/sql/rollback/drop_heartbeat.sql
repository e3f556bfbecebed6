-- Drops the heartbeat function when no worker calls it any more.

drop function if exists executor.update_job_heartbeat(uuid, text, integer);
