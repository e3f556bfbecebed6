-- Only on request: drops the view executor_jobs, enqueue_job and this profile's own tables.
-- Jobs, dead letters and events belong to the engine and stay.

drop function if exists executor.wake_execution_engine();
drop function if exists executor.process_orchestrator_jobs();
drop function if exists executor.requeue_dead_jobs(text, timestamptz, integer);
drop function if exists executor.enqueue_job(text, jsonb, text);
drop function if exists executor.set_job_type(text, interval, text, interval, interval);
drop function if exists executor.executor_register(text, interval, text, interval);
drop view if exists executor.executor_job_types;
drop view if exists executor.executor_jobs;
drop function if exists executor.executor_last_error(text, jsonb);
drop function if exists executor.executor_was_reclaimed(jsonb);
drop function if exists executor.executor_time(text);
drop function if exists executor.executor_status(text);
drop table if exists executor.executor_heartbeats;
drop table if exists executor.executor_cycles;
drop table if exists executor.executor_type_settings;
