-- Refuses an empty or overlong name of a queue.
create or replace function trunkline_internal.check_queue_name(p_queue text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_queue is null or p_queue = '' or length(p_queue) > 200 then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_queue', 'must_be', '1 to 200 characters')
    );
  end if;
end;
$$;
comment on function trunkline_internal.check_queue_name(text) is 'Refuses an empty or overlong name of a queue.';
