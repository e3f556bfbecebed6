-- Returns a hash of the tasks and payloads of child jobs, per task in the order of the requests. Options do not count.
create or replace function trunkline_internal.requests_hash(p_steps jsonb)
returns bigint
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select ('x' || left(md5(string_agg(
      concat_ws(' ', s.step ->> 'name', s.step ->> 'payload', i.payloads::text), e'\n' order by s.step ->> 'name' collate "C"
    )), 16))::bit(64)::bigint
    -- Anything but an array is refused with the graph.
    from jsonb_array_elements(case jsonb_typeof(p_steps) when 'array' then p_steps else '[]' end) as s (step)
    cross join lateral (
      select jsonb_agg(i.item -> 'payload' order by i.place) as payloads
      from jsonb_array_elements(case jsonb_typeof(s.step -> 'items') when 'array' then s.step -> 'items' else '[]' end)
        with ordinality as i (item, place)
    ) as i
  );
end;
$$;
comment on function trunkline_internal.requests_hash(jsonb) is 'Returns a hash of the tasks and payloads of child jobs, per task in the order of the requests. Options do not count.';
