-- Drops the views of phase 3; their data belongs to the engine and stays.

drop view if exists executor.executor_metrics;
drop view if exists executor.executor_jobs_reclaim_history;
drop view if exists executor.executor_jobs_stale_validation;
drop view if exists executor.executor_jobs_stale_monitor;
