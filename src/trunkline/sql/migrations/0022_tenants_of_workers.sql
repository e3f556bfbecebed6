-- why: a worker belongs to the tenant it acts for; a provider's answer is reported for a job
-- breaking: no

alter table trunkline_internal.workers add column tenant text;
comment on column trunkline_internal.workers.tenant is 'The tenant whose session registered it. Null: a session that acts for all tenants.';
create policy tenant_rows on trunkline_internal.workers for select using (tenant = nullif(current_setting('trunkline.tenant', true), ''));

-- squawk-ignore ban-drop-function
drop function if exists trunkline_internal.find_limit(text, jsonb, text, text);
-- Made again with two more arguments, which have defaults.
-- squawk-ignore ban-drop-function
drop function if exists trunkline.observe_limit(text, jsonb, jsonb);
