-- Tells the index of the first job of a document whose fields do not have the types of enqueue's arguments; null when all have.
-- One by one, since only who converts each alone knows which one it was. Called when a batch has failed.
create or replace function trunkline_internal.misfit(p_jobs jsonb, p_now timestamptz)
returns integer
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  for v_index in 0..jsonb_array_length(p_jobs) - 1 loop
    begin
      -- All of it, because columns that nobody asks for need not be converted; the sum may overflow.
      perform j, p_now + j.delay
      from jsonb_to_record(p_jobs -> v_index) as j (
        task text, payload jsonb, queue text, priority integer, run_at timestamptz, delay interval,
        tenant text, unique_key text, idempotency_key text, correlation_id text, max_attempts integer,
        tags text[], cost jsonb, accepted boolean
      );
    exception
      when data_exception or feature_not_supported then
        return v_index;
    end;
  end loop;
  return null;
end;
$$;
comment on function trunkline_internal.misfit(jsonb, timestamptz) is
  'Tells the index of the first job of a document whose fields do not have the types of enqueue''s arguments; null when all have.';
