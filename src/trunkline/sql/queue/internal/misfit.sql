-- Returns the index of the first job of a document whose fields do not have the types of enqueue's arguments; null if all have.
-- Converts each job on its own, because a conversion of all of them does not report which one failed. Called when a batch
-- has failed.
create or replace function trunkline_internal.misfit(p_jobs jsonb, p_now timestamptz)
returns integer
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  for v_index in 0..jsonb_array_length(p_jobs) - 1 loop
    begin
      -- All columns, because PostgreSQL may skip converting unread columns. The sum may overflow.
      perform r, p_now + r.delay from jsonb_populate_record(null::trunkline_internal.request, p_jobs -> v_index) as r;
    exception
      when data_exception or feature_not_supported then
        return v_index;
    end;
  end loop;
  return null;
end;
$$;
comment on function trunkline_internal.misfit(jsonb, timestamptz) is 'Returns the index of the first job of a document whose fields do not have the types of enqueue''s arguments; null if all have.';
