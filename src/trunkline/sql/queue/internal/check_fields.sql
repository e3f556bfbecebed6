-- Refuses a document of jobs with fields that a request does not have, naming the first twenty.
create or replace function trunkline_internal.check_fields(p_jobs jsonb)
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
    where f.field <> all(trunkline_internal.request_fields(p_except => '{}'))
    limit 20
  ) as u;
  if v_unknown is not null then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object(
        'argument', 'p_jobs', 'unknown_fields', v_unknown, 'must_be', trunkline_internal.request_fields(p_except => '{}')
      )
    );
  end if;
end;
$$;
comment on function trunkline_internal.check_fields(jsonb) is 'Refuses a document of jobs with fields that a request does not have, naming the first twenty.';
