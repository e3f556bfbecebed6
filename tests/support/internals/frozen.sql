-- For pgTAP files: stops the clock at noon, so that times can be compared exactly; trunkline_test.move_time still moves it.
-- Every random draw is 0.5, or what t.draw sets. The variable noon has the time. Include helpers/tools.sql first.
set session authorization default;
select (date_trunc('day', now() at time zone 'UTC') + interval '12 hours') at time zone 'UTC' as noon \gset
select format(
  'create or replace function trunkline_test.engine_clock() returns timestamptz language sql stable as %L',
  format('select %L::timestamptz', :'noon')
) \gexec
create function t.draw(p_number double precision) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
  execute format(
    'create or replace function trunkline_internal.draw() returns double precision language sql volatile as %L',
    format('select %s::double precision', p_number)
  );
end;
$$;
select t.draw(0.5) \g /dev/null
-- How long after noon.
select format(
  'create function t.after_noon(p_at timestamptz) returns interval language sql immutable as %L',
  format('select p_at - %L::timestamptz', :'noon')
) \gexec
set session authorization trunkline_installer;
