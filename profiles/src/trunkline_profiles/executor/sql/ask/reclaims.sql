select count(*), count(distinct h.old_worker) from executor.executor_jobs_reclaim_history as h
