-- Refuses a request because the job is in the wrong state, or because the caller cannot see it.
create or replace function trunkline_internal.refuse_state(p_job uuid, p_state text, p_allowed text[])
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_state is null then
    perform trunkline_internal.refuse(p_name => 'unknown_job', p_detail => jsonb_build_object('job', p_job));
  end if;
  perform trunkline_internal.refuse(
    p_name => 'wrong_state',
    p_detail => jsonb_build_object('job', p_job, 'state', p_state, 'allowed', p_allowed)
  );
end;
$$;
comment on function trunkline_internal.refuse_state(uuid, text, text[]) is 'Refuses a request because the job is in the wrong state, or because the caller cannot see it.';
