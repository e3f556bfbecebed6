-- Queues files for the sweeper of some worker, which deletes them from the store.
create or replace function trunkline_internal.queue_removals(p_paths text[], p_reason text, p_due timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into trunkline_internal.file_removals (path, queued_at, due_at, reason)
  select p.path, trunkline.clock(), p_due, p_reason
  from unnest(p_paths) as p (path)
  order by p.path
  on conflict (path) do nothing;
end;
$$;
comment on function trunkline_internal.queue_removals(text[], text, timestamptz) is 'Queues files for the sweeper of some worker, which deletes them from the store.';
