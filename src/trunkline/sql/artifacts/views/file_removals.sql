-- Files that wait to be deleted from the store, and the error of the last try.
create or replace view trunkline.file_removals with (security_barrier = true) as
select r.path, r.reason, r.queued_at, r.due_at, r.tries, r.last_error
from trunkline_internal.file_removals as r
where (select trunkline.tenant_scope() is null);
comment on view trunkline.file_removals is 'Files that wait to be deleted from the store, and the error of the last try.';
