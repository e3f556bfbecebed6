-- Expiry: files of expired exports go, their rows are marked once the file is gone, and old rows are dropped.
-- requires: base, records, reading
-- source: 2.11

create table if not exists exports.cleanup_results (
  result bigint generated always as identity primary key,
  at timestamptz not null,
  deleted integer not null,
  failed integer not null,
  actor text not null default session_user
);
create index if not exists cleanup_results_by_time on exports.cleanup_results (at);
comment on table exports.cleanup_results is 'Pages of the cleanup that found something: exports handed to the removal of files, and those that failed.';
alter table exports.cleanup_results enable row level security;
alter table exports.cleanup_results force row level security;
drop policy if exists all_rows on exports.cleanup_results;
create policy all_rows on exports.cleanup_results using (true) with check (true);

create or replace function exports.bury_export(p_user_id uuid, p_artifact uuid, p_reason text)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_claims text := coalesce(current_setting('request.jwt.claims', true), '');
  v_tenant text := coalesce(current_setting('trunkline.tenant', true), '');
  v_is_buried boolean := true;
begin
  -- Narrowed to the owner of the file, because the caller may be an administrator who is signed in as a user.
  perform set_config('request.jwt.claims', '', true), set_config('trunkline.tenant', p_user_id::text, true);
  begin
    perform trunkline.delete_artifact(p_artifact => p_artifact, p_reason => p_reason);
  exception
    when others then
      -- A row whose artifact is gone has no file any more; every other error leaves it for the next run.
      v_is_buried := not exists (select from trunkline.artifacts as a where a.artifact_id = p_artifact);
  end;
  perform set_config('request.jwt.claims', v_claims, true), set_config('trunkline.tenant', v_tenant, true);
  return v_is_buried;
end;
$$;
comment on function exports.bury_export(uuid, uuid, text) is 'Queues the file of an export for removal and frees its space; false if that failed.';

create or replace function exports.cleanup_page(p_limit integer default 500)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_deleted integer := 0;
  v_failed integer := 0;
  v_now timestamptz := trunkline.clock();
  v_row record;
begin
  for v_row in
    select h.id, h.user_id, h.artifact_id
    from exports.export_history as h
    where h.expires_at < v_now and h.removal_queued_at is null and h.deleted_at is null
    order by h.expires_at
    limit least(greatest(coalesce(p_limit, 500), 1), 5000)
    -- Another run has locked the others.
    for update of h skip locked
  loop
    if exports.bury_export(p_user_id => v_row.user_id, p_artifact => v_row.artifact_id, p_reason => 'expired') then
      update exports.export_history as h set removal_queued_at = v_now where h.id = v_row.id;
      v_deleted := v_deleted + 1;
    else
      v_failed := v_failed + 1;
    end if;
  end loop;
  if v_deleted + v_failed > 0 then
    insert into exports.cleanup_results (at, deleted, failed) values (v_now, v_deleted, v_failed);
  end if;
  return v_deleted;
end;
$$;
comment on function exports.cleanup_page(integer) is 'Hands the files of expired exports to removal, oldest first, one page; returns how many. Safe to run twice at once.';

create or replace function exports.mark_removed(p_limit integer default 1000)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_marked integer;
begin
  update exports.export_history as h
  set deleted_at = trunkline.clock()
  where h.id in (
    select o.id
    from exports.export_history as o
    where o.removal_queued_at is not null
      and o.deleted_at is null
      -- The engine keeps this row until the store has confirmed that the file is gone.
      and not exists (select from trunkline.file_removals as f where f.path = o.file_path)
      and not exists (select from trunkline.artifacts as a where a.artifact_id = o.artifact_id and a.deleted_at is null)
    order by o.removal_queued_at
    limit least(greatest(coalesce(p_limit, 1000), 1), 100000)
    for update of o skip locked
  );
  get diagnostics v_marked = row_count;
  return v_marked;
end;
$$;
comment on function exports.mark_removed(integer) is 'Duty: marks exports whose files are really gone; returns how many.';

create or replace function exports.purge_records(p_limit integer default 1000)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := trunkline.clock();
  v_purged integer;
  v_settings exports.settings;
begin
  select s.* into v_settings from exports.settings as s;
  with gone as (
    delete from exports.export_history as h
    where h.id in (
      select o.id from exports.export_history as o
      where o.deleted_at < v_now - v_settings.tombstones
      order by o.deleted_at
      limit p_limit
      for update of o skip locked
    )
    returning h.id
  ),
  old as (
    delete from exports.requests as r
    where r.job_id in (
      select o.job_id from exports.requests as o
      where o.created_at < v_now - v_settings.job_retention
        and not exists (
          select from trunkline.jobs as j where j.job_id = o.job_id and j.state in ('ready', 'scheduled', 'blocked', 'running')
        )
      order by o.created_at
      limit p_limit
      for update of o skip locked
    )
    returning r.job_id
  )
  select (select count(*) from gone) + (select count(*) from old) into v_purged;
  return v_purged;
end;
$$;
comment on function exports.purge_records(integer) is 'Drops tombstones and requests that are older than 30 days; returns how many rows.';

create or replace function exports.continue_cleanup(p_deleted integer default 0)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  c_page constant integer := 500;
  v_deleted integer := exports.cleanup_page(p_limit => c_page);
  v_purged integer := exports.purge_records(p_limit => c_page);
  v_total integer := coalesce(p_deleted, 0) + v_deleted;
begin
  perform exports.mark_removed(p_limit => c_page);
  if v_deleted >= c_page or v_purged >= c_page then
    -- In the transaction that completes this page, so that a worker that dies neither loses nor repeats the rest.
    perform trunkline.enqueue(
      p_task => 'cleanup_expired_exports', p_payload => jsonb_build_object('deleted', v_total), p_accepted => true
    );
  end if;
  return v_total;
end;
$$;
comment on function exports.continue_cleanup(integer) is 'Does one page of the cleanup and enqueues the next one if there is more; returns how many exports it has deleted so far.';

create or replace function exports.run_cleanup(p_limit integer default 500)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller name := coalesce(nullif(current_setting('role'), 'none')::name, session_user);
  v_scope text := trunkline.tenant_scope();
begin
  if not (
    v_scope is null and pg_has_role(v_caller, 'trunkline_operator', 'usage')
    or exists (select from exports.people as p where p.id::text = v_scope and p.is_administrator)
  ) then
    perform exports.refuse(p_code => 'not_administrator', p_message => 'only administrators start the cleanup by hand');
  end if;
  return exports.cleanup_page(p_limit => p_limit);
end;
$$;
comment on function exports.run_cleanup(integer) is 'Runs a page of the cleanup for an administrator or an operator; refuses other users.';

create or replace function exports.forget_user(p_user_id uuid)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_claims text := coalesce(current_setting('request.jwt.claims', true), '');
  v_tenant text := coalesce(current_setting('trunkline.tenant', true), '');
begin
  -- A platform deletes users with a role of its own, which would see no jobs.
  perform set_config('request.jwt.claims', '', true), set_config('trunkline.tenant', p_user_id::text, true);
  perform trunkline.cancel(p_job => l.job_id, p_reason => 'user deleted') from exports.live_requests(p_user_id => p_user_id) as l;
  perform trunkline.delete_artifact(p_artifact => a.artifact_id, p_reason => 'user deleted')
  from trunkline.artifacts as a
  where a.tenant = p_user_id::text and a.task = 'export_document' and a.deleted_at is null;
  delete from exports.requests as r where r.user_id = p_user_id;
  delete from exports.export_history as h where h.user_id = p_user_id;
  delete from exports.documents as d where d.user_id = p_user_id;
  perform set_config('request.jwt.claims', v_claims, true), set_config('trunkline.tenant', v_tenant, true);
end;
$$;
comment on function exports.forget_user(uuid) is 'Removes the exports, history rows, documents and files of a user.';

create or replace function exports.user_deleted()
returns trigger
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform exports.forget_user(p_user_id => old.id);
  return null;
end;
$$;
comment on function exports.user_deleted() is 'Trigger: removes what a deleted user had.';
drop trigger if exists user_deleted on exports.people;
create trigger user_deleted after delete on exports.people for each row execute function exports.user_deleted();
do $platform$
begin
  -- Needs: grant trigger on auth.users to trunkline_owner.
  if to_regclass('auth.users') is not null and has_schema_privilege('auth', 'usage') and has_table_privilege('auth.users', 'trigger') then
    execute 'drop trigger if exists exports_user_deleted on auth.users';
    execute 'create trigger exports_user_deleted after delete on auth.users for each row execute function exports.user_deleted()';
  end if;
end
$platform$;

create or replace function exports.document_deleted()
returns trigger
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform trunkline.cancel(p_job => r.job_id, p_reason => 'document deleted')
  from exports.requests as r
  where r.document_id = old.id and not r.is_closed;
  return null;
end;
$$;
comment on function exports.document_deleted() is 'Trigger: cancels the exports of a deleted document.';
drop trigger if exists document_deleted on exports.documents;
create trigger document_deleted after delete on exports.documents for each row execute function exports.document_deleted();
