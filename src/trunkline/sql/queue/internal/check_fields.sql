-- Refuses a document of jobs with fields that enqueue does not know, naming the first twenty.
create or replace function trunkline_internal.check_fields(p_jobs jsonb, p_known text[])
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_unknown jsonb;
begin
  select jsonb_object_agg(u.place - 1, u.field)
  into v_unknown
  from (
    select j.place, f.field
    from jsonb_array_elements(p_jobs) with ordinality as j (job, place)
    cross join lateral jsonb_object_keys(j.job) as f (field)
    where f.field <> all(p_known)
    limit 20
  ) as u;
  if v_unknown is not null then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_jobs', 'unknown_fields', v_unknown, 'must_be', p_known)
    );
  end if;
end;
$$;
comment on function trunkline_internal.check_fields(jsonb, text[]) is
  'Refuses a document of jobs with fields that enqueue does not know, naming the first twenty.';
