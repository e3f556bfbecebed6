-- why: the second wall: should a table ever be granted to somebody directly, he sees the rows of his tenant and no others
-- breaking: no

-- Forced, because without it the owner's own rights would pass it by. The owner's policy lets the
-- definer functions work; their guard is the tenant predicate in each of them.
-- The tenant policy is a plain expression and calls no function of ours, so that nobody needs a
-- right in the private schema to be held back by it.
alter table trunkline_internal.schema_migrations enable row level security, force row level security;
create policy owner_rows on trunkline_internal.schema_migrations to trunkline_owner using (true) with check (true);
alter table trunkline_internal.settings enable row level security, force row level security;
create policy owner_rows on trunkline_internal.settings to trunkline_owner using (true) with check (true);
alter table trunkline_internal.tasks enable row level security, force row level security;
create policy owner_rows on trunkline_internal.tasks to trunkline_owner using (true) with check (true);
alter table trunkline_internal.queues enable row level security, force row level security;
create policy owner_rows on trunkline_internal.queues to trunkline_owner using (true) with check (true);
alter table trunkline_internal.lanes enable row level security, force row level security;
create policy owner_rows on trunkline_internal.lanes to trunkline_owner using (true) with check (true);
alter table trunkline_internal.job_transitions enable row level security, force row level security;
create policy owner_rows on trunkline_internal.job_transitions to trunkline_owner using (true) with check (true);
alter table trunkline_internal.bodies enable row level security, force row level security;
create policy owner_rows on trunkline_internal.bodies to trunkline_owner using (true) with check (true);
alter table trunkline_internal.partitioned_tables enable row level security, force row level security;
create policy owner_rows on trunkline_internal.partitioned_tables to trunkline_owner using (true) with check (true);
alter table trunkline_internal.partitions enable row level security, force row level security;
create policy owner_rows on trunkline_internal.partitions to trunkline_owner using (true) with check (true);
alter table trunkline_internal.workers enable row level security, force row level security;
create policy owner_rows on trunkline_internal.workers to trunkline_owner using (true) with check (true);
alter table trunkline_internal.duties enable row level security, force row level security;
create policy owner_rows on trunkline_internal.duties to trunkline_owner using (true) with check (true);

alter table trunkline_internal.waiting enable row level security, force row level security;
create policy owner_rows on trunkline_internal.waiting to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.waiting for select using (tenant = nullif(current_setting('trunkline.tenant', true), ''));
alter table trunkline_internal.running enable row level security, force row level security;
create policy owner_rows on trunkline_internal.running to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.running for select using (tenant = nullif(current_setting('trunkline.tenant', true), ''));
alter table trunkline_internal.finished enable row level security, force row level security;
create policy owner_rows on trunkline_internal.finished to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.finished for select using (tenant = nullif(current_setting('trunkline.tenant', true), ''));
alter table trunkline_internal.dead enable row level security, force row level security;
create policy owner_rows on trunkline_internal.dead to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.dead for select using (tenant = nullif(current_setting('trunkline.tenant', true), ''));
alter table trunkline_internal.events enable row level security, force row level security;
create policy owner_rows on trunkline_internal.events to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.events for select using (tenant = nullif(current_setting('trunkline.tenant', true), ''));
alter table trunkline_internal.unique_keys enable row level security, force row level security;
create policy owner_rows on trunkline_internal.unique_keys to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.unique_keys for select
  using (tenant = nullif(current_setting('trunkline.tenant', true), ''));
alter table trunkline_internal.idempotency_keys enable row level security, force row level security;
create policy owner_rows on trunkline_internal.idempotency_keys to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.idempotency_keys for select
  using (tenant = nullif(current_setting('trunkline.tenant', true), ''));

-- Partitions are reached through their parent and its policies; on their own they show nothing to
-- anybody but the owner (not forced, so that maintenance can move rows out of a default).
alter table trunkline_internal.finished_default enable row level security;
alter table trunkline_internal.bodies_default enable row level security;
alter table trunkline_internal.events_default enable row level security;
