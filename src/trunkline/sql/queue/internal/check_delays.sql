-- Refuses negative delays and delays of more than ten years.
create or replace function trunkline_internal.check_delays(p_delays interval[])
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_bad interval;
begin
  select d.delay into v_bad from unnest(p_delays) as d (delay) where d.delay < interval '0' limit 1;
  if found then
    perform trunkline_internal.refuse(p_name => 'negative_delay', p_detail => jsonb_build_object('delay', v_bad));
  end if;
  select d.delay into v_bad from unnest(p_delays) as d (delay) where d.delay > interval '3650 days' limit 1;
  if found then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_delays', 'must_be', 'at most 3650 days', 'delay', v_bad)
    );
  end if;
end;
$$;
comment on function trunkline_internal.check_delays(interval[]) is
  'Refuses negative delays and delays of more than ten years.';
