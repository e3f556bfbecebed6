-- Draws a number from 0 to 1, without 1. Tests replace it to have their draw.
create or replace function trunkline_internal.draw()
returns double precision
language sql
volatile
as $$
  select pg_catalog.random()
$$;
comment on function trunkline_internal.draw() is 'Draws a number from 0 to 1, without 1. Tests replace it to have their draw.';
