-- What is exported: people, their documents with a version, and the templates.
-- requires: base
-- source: 2.2, 2.3, 2.5

create table if not exists exports.people (
  id uuid primary key,
  name text not null default '' check (length(name) <= 200),
  is_administrator boolean not null default false
);
comment on table exports.people is 'People with the name that their exports carry. A platform with auth.users needs a row only for another name, or for administrators.';
alter table exports.people enable row level security;
alter table exports.people force row level security;
drop policy if exists own_row on exports.people;
create policy own_row on exports.people using (exports.sees(p_user_id => id)) with check (exports.sees(p_user_id => id));

create table if not exists exports.templates (
  slug text primary key check (slug ~ '^[a-z][a-z0-9-]{0,49}$'),
  title text not null check (title <> '' and length(title) <= 100)
);
comment on table exports.templates is 'The templates of a résumé; their markup is part of the worker.';
alter table exports.templates enable row level security;
alter table exports.templates force row level security;
drop policy if exists all_rows on exports.templates;
create policy all_rows on exports.templates using (true) with check (true);
insert into exports.templates (slug, title)
values ('minimal', 'Minimal'), ('classic', 'Classic'), ('compact', 'Compact')
on conflict do nothing;

create table if not exists exports.documents (
  id uuid primary key default gen_random_uuid(),
  user_id uuid not null,
  title text not null check (title <> '' and length(title) <= 200),
  version integer not null default 1 check (version >= 1),
  data jsonb not null default '{}' check (jsonb_typeof(data) = 'object'),
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp()
);
create index if not exists documents_by_user on exports.documents (user_id, created_at desc);
comment on table exports.documents is 'Documents of the editor. A change of title or data raises the version.';
alter table exports.documents enable row level security;
alter table exports.documents force row level security;
drop policy if exists own_rows on exports.documents;
create policy own_rows on exports.documents
using (exports.sees(p_user_id => user_id)) with check (exports.sees(p_user_id => user_id));

create or replace function exports.raise_version()
returns trigger
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if (new.title, new.data) is distinct from (old.title, old.data) then
    new.version := old.version + 1;
    new.updated_at := trunkline.clock();
  else
    new.version := old.version;
  end if;
  return new;
end;
$$;
comment on function exports.raise_version() is 'Trigger: raises the version of a document whose title or data changes; nothing else changes it.';
drop trigger if exists raise_version on exports.documents;
create trigger raise_version before update on exports.documents for each row execute function exports.raise_version();

create or replace function exports.file_name(p_title text)
returns text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  -- Control characters, marks that turn the direction of text, and what file systems refuse.
  select coalesce(nullif(btrim(left(btrim(regexp_replace(
    regexp_replace(p_title, '[\u0001-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069/\\:*?"<>|]+', '-', 'g'),
    '\.{2,}', '.', 'g'
  ), ' .-'), 120), ' .-'), ''), 'export') || '.pdf'
$$;
comment on function exports.file_name(text) is 'Returns the name of a file for a title: no separators, no dots alone, at most 120 letters.';

create or replace function exports.person_name(p_user_id uuid)
returns text
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_name text := (select p.name from exports.people as p where p.id = p_user_id);
begin
  -- Dynamic, because auth.users exists only on a platform.
  if coalesce(v_name, '') = '' and to_regclass('auth.users') is not null
    and has_schema_privilege('auth', 'usage') and has_table_privilege('auth.users', 'select')
  then
    execute 'select u.raw_user_meta_data ->> ''full_name'' from auth.users as u where u.id = $1' into v_name using p_user_id;
  end if;
  return coalesce(v_name, '');
end;
$$;
comment on function exports.person_name(uuid) is 'Returns the name of a person: that of exports.people, or the full name in auth.users if the owner may read it; otherwise an empty text.';
