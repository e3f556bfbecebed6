-- why: the tables, types and first rows of the engine, one file for each domain, read in the order of their names
-- breaking: no

-- Row-level security is the second line of defence: a role that is ever granted a table directly sees only the rows of its
-- tenant. It is forced because the owner would otherwise bypass it. The owner's policy lets the definer functions work; each
-- of them applies the tenant predicate itself. The tenant policy is a plain expression and calls none of our functions, so
-- it needs no right in the private schema.

create table trunkline_internal.schema_migrations (
  version integer primary key,
  name text not null,
  sha256 text not null,
  breaking boolean not null,
  applied_at timestamptz not null default clock_timestamp(),
  applied_by text not null default session_user
);
comment on table trunkline_internal.schema_migrations is 'The migrations applied to this database, one row each.';
alter table trunkline_internal.schema_migrations enable row level security, force row level security;
create policy owner_rows on trunkline_internal.schema_migrations to trunkline_owner using (true) with check (true);

create type trunkline.schema_version_info as (
  version integer,
  contract integer,
  oldest_contract integer
);
comment on type trunkline.schema_version_info is 'Result of schema_version: the newest migration, the contract it serves and the oldest client contract it still serves.';

create table trunkline_internal.schema_release (
  singleton boolean not null default true constraint schema_release_pkey primary key check (singleton),
  release text not null,
  ordinal integer[] not null,
  applied_at timestamptz not null default now()
);
comment on table trunkline_internal.schema_release is 'The release of the package that last applied the functions; one row.';
comment on column trunkline_internal.schema_release.ordinal is 'The release as numbers that compare in order; a pre-release comes before its release.';
alter table trunkline_internal.schema_release enable row level security, force row level security;
create policy owner_rows on trunkline_internal.schema_release to trunkline_owner using (true) with check (true);

create table trunkline_internal.installers (
  role text not null constraint installers_pkey primary key,
  recorded_at timestamptz not null default clock_timestamp()
);
comment on table trunkline_internal.installers is 'Roles that installed, upgraded or restored the schema: the logins that may be members of trunkline_owner.';
alter table trunkline_internal.installers enable row level security, force row level security;
create policy owner_rows on trunkline_internal.installers to trunkline_owner using (true) with check (true);
insert into trunkline_internal.installers (role) values (session_user);
