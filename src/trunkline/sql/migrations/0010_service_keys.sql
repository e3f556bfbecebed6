-- why: programs sign in to the HTTP API with service keys; claims of a session count only in logins that set them for callers
-- breaking: no

create table trunkline_internal.service_keys (
  key_id text not null constraint service_keys_pkey primary key check (key_id ~ '^[0-9a-z]{12}$'),
  created_at timestamptz not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  secret_hash bytea not null check (octet_length(secret_hash) = 32),
  name text not null check (length(name) between 1 and 100),
  role text not null check (role in ('operator', 'producer', 'reader')),
  for_tenant text check (for_tenant <> '' and length(for_tenant) <= 200),
  created_by text not null,
  revoked_by text,
  constraint service_keys_revoked_by_somebody check ((revoked_at is null) = (revoked_by is null))
);
comment on table trunkline_internal.service_keys is 'Keys with which programs sign in to the HTTP API. Only a hash of the secret is stored.';
comment on column trunkline_internal.service_keys.role is 'The role of the database in which requests with the key run: trunkline_ and this name.';
comment on column trunkline_internal.service_keys.for_tenant is 'The only tenant for which the key acts. Null for all tenants.';
comment on column trunkline_internal.service_keys.last_used_at is 'When it was last used, exact to the minute.';
alter table trunkline_internal.service_keys enable row level security, force row level security;
create policy owner_rows on trunkline_internal.service_keys to trunkline_owner using (true) with check (true);

insert into trunkline_internal.settings (name, kind, default_value, minimum, maximum, description) values
  ('authenticators', 'text', 'authenticator', null, null,
    'Logins that set the claims of their callers, such as those of the HTTP API and of PostgREST, separated by commas.');
