-- Returns the delay of a job that is deferred without a given delay: 60 s, doubling to 15 minutes.
create or replace function trunkline_internal.deferral_delay(p_deferrals integer)
returns interval
language sql
immutable
as $$
  select pg_catalog.make_interval(secs => least(60 * pg_catalog.power(2, least(p_deferrals, 10)), 900))
$$;
comment on function trunkline_internal.deferral_delay(integer) is 'Returns the delay of a job that is deferred without a given delay: 60 s, doubling to 15 minutes.';
