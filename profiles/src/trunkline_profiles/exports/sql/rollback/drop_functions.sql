-- Drops the functions and views that users, workers and operators call. Documents, records and all jobs stay.

select trunkline.remove_duty(p_duty => d.duty) from trunkline.duties as d where d.duty = 'exports_mark_removed';
select trunkline.remove_schedule(p_schedule => s.schedule) from trunkline.schedules as s where s.schedule = 'cleanup-expired-exports';
drop trigger if exists document_deleted on exports.documents;
drop trigger if exists user_deleted on exports.people;
do $platform$
begin
  if to_regclass('auth.users') is not null and has_schema_privilege('auth', 'usage') then
    if exists (select from pg_trigger as t where t.tgrelid = to_regclass('auth.users') and t.tgname = 'exports_user_deleted') then
      drop trigger exports_user_deleted on auth.users;
    end if;
  end if;
end
$platform$;
drop view if exists exports.rollout_steps;
drop view if exists exports.metrics;
drop view if exists exports.export_jobs;
drop function if exists exports.run_step;
drop function if exists exports.step_problems;
drop function if exists exports.is_served;
drop function if exists exports.document_deleted;
drop function if exists exports.user_deleted;
drop function if exists exports.forget_user;
drop function if exists exports.run_cleanup;
drop function if exists exports.continue_cleanup;
drop function if exists exports.purge_records;
drop function if exists exports.mark_removed;
drop function if exists exports.cleanup_page;
drop function if exists exports.bury_export;
drop function if exists exports.delete_export;
drop function if exists exports.count_download;
drop function if exists exports.read_export;
drop function if exists exports.require_export;
drop function if exists exports.list_history;
drop function if exists exports.batch_files;
drop function if exists exports.get_batch;
drop function if exists exports.cancel_job;
drop function if exists exports.get_job_status;
drop function if exists exports.reset_stuck_jobs;
drop function if exists exports.fail_job;
drop function if exists exports.complete_job;
drop function if exists exports.record_export;
drop function if exists exports.prepare_upload;
drop function if exists exports.update_job_progress;
drop function if exists exports.fetch_next_export_job;
drop function if exists exports.export_input;
drop function if exists exports.require_attempt;
drop function if exists exports.running_attempt;
drop function if exists exports.create_export_batch;
drop function if exists exports.batch_documents;
drop function if exists exports.create_export_job;
drop function if exists exports.check_storage_quota;
drop function if exists exports.require_places;
drop function if exists exports.require_room;
drop function if exists exports.record_operation;
drop function if exists exports.spend_operations;
drop function if exists exports.live_requests;
drop function if exists exports.close_ended;
drop function if exists exports.estimated_bytes;
drop function if exists exports.used_bytes;
drop function if exists exports.dedupe_key;
drop function if exists exports.checked_options;
drop function if exists exports.full_options;
drop function if exists exports.options_problems;
drop function if exists exports.public_error;
drop function if exists exports.job_status;
