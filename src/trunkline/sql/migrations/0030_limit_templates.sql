-- why: two sessions that add limits with keys at once could add names that overlap
-- breaking: no

-- squawk-ignore ban-drop-function
drop function if exists trunkline_internal.overlapping_limit(text);

create table trunkline_internal.limit_templates (
  singleton boolean not null default true constraint limit_templates_pkey primary key check (singleton),
  revision bigint not null default 0
);
comment on table trunkline_internal.limit_templates is 'One row that a session updates before it adds a limit name with keys, so that sessions check such names in turn.';
comment on column trunkline_internal.limit_templates.revision is 'Grows with each name, so that a transaction with an older snapshot fails instead of missing the last one.';
alter table trunkline_internal.limit_templates enable row level security, force row level security;
create policy owner_rows on trunkline_internal.limit_templates to trunkline_owner using (true) with check (true);
insert into trunkline_internal.limit_templates default values;
