-- Drops the profile's tables and their helpers. Jobs and files stay: they belong to the engine.

drop table if exists exports.rollout_results;
drop table if exists exports.cleanup_results;
drop table if exists exports.export_history;
drop table if exists exports.requests;
drop table if exists exports.documents;
drop table if exists exports.templates;
drop table if exists exports.people;
drop table if exists exports.settings;
drop function if exists exports.register_tasks;
drop function if exists exports.calculate_retry_delay;
drop function if exists exports.person_name;
drop function if exists exports.file_name;
drop function if exists exports.raise_version;
drop function if exists exports.as_megabytes;
drop function if exists exports.acting_user;
drop function if exists exports.sees;
drop function if exists exports.refuse;
