-- The schema of a profile. Run by the installer as itself, who may create schemas.

do $prepare$
begin
  if to_regnamespace('profile_schema') is null then
    create schema profile_schema authorization trunkline_owner;
  elsif not has_schema_privilege('trunkline_owner', to_regnamespace('profile_schema'), 'usage')
    or not has_schema_privilege('trunkline_owner', to_regnamespace('profile_schema'), 'create')
  then
    raise exception using
      errcode = 'TL092',
      message = 'schema belongs to another role',
      detail = json_build_object('code', 'foreign_schema', 'schema', 'profile_schema')::text,
      hint = 'Choose another schema, or let its owner run: grant usage, create on schema profile_schema to trunkline_owner;';
  end if;
end
$prepare$;
