-- why: an older package must be able to tell that the functions are newer than its own, also where no migration is
-- breaking: no

create table trunkline_internal.schema_release (
  singleton boolean not null default true constraint schema_release_pkey primary key check (singleton),
  release text not null,
  ordinal integer[] not null,
  applied_at timestamptz not null default now()
);
comment on table trunkline_internal.schema_release is 'Which release of the package applied the functions last; one row.';
comment on column trunkline_internal.schema_release.ordinal is 'The release as numbers that compare in order; a pre-release comes before its release.';
alter table trunkline_internal.schema_release enable row level security, force row level security;
create policy owner_rows on trunkline_internal.schema_release to trunkline_owner using (true) with check (true);
