-- Drops the profile's tables and the helpers of the catalogue. Jobs and files stay: they belong to the engine.

drop table if exists studio.rollout_results;
drop table if exists studio.pool_decisions;
drop table if exists studio.pool_targets;
drop table if exists studio.polls;
drop table if exists studio.legacy_jobs;
drop table if exists studio.routing;
drop view if exists studio.artifact_types;
drop view if exists studio.systems;
drop function if exists studio.register_tasks;
drop table if exists studio.task_types;
drop table if exists studio.documents;
drop table if exists studio.job_types;
drop function if exists studio.require_small;
drop function if exists studio.content_problem;
drop function if exists studio.max_bytes;
drop function if exists studio.refuse;
