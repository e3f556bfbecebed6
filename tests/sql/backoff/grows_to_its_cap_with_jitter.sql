-- EX-30, EX-31, RC-18: the wait after the n-th failure is base x factor^(n-1), up to 20 % more or less, never above the cap.
\ir ../helpers/tools.sql
\ir ../../support/internals/internals.sql
select plan(9);

create function pg_temp.waits(p_failures integer, p_jitter double precision) returns setof numeric
language sql volatile
as $$
  select extract(epoch from t.backoff(
    p_failures => p_failures + 0 * g.n, p_base => '60 seconds', p_factor => 2, p_cap => '3600 seconds', p_jitter => p_jitter
  ))
  from generate_series(1, 400) as g (n)
$$;

select is(
  (select array_agg((select min(w)::integer from pg_temp.waits(n, 0) as w) order by n) from generate_series(1, 8) as n),
  array[60, 120, 240, 480, 960, 1920, 3600, 3600],
  'without jitter: doubling from the base up to the cap'
);
select ok((select bool_and(w between 48 and 72) from pg_temp.waits(1, 0.2) as w), 'first: 48 to 72');
select ok((select bool_and(w between 96 and 144) from pg_temp.waits(2, 0.2) as w), 'second: 96 to 144');
select ok((select bool_and(w between 192 and 288) from pg_temp.waits(3, 0.2) as w), 'third: 192 to 288');
select ok((select bool_and(w between 384 and 576) from pg_temp.waits(4, 0.2) as w), 'fourth: 384 to 576');
-- 400 draws miss one of these quarters about once in 10^50 runs.
select ok((select min(w) < 54 and max(w) > 66 from pg_temp.waits(1, 0.2) as w), 'both ends of the range are drawn');
select ok((select max(w) = 3600 and min(w) >= 2880 from pg_temp.waits(9, 0.2) as w), 'the cap holds with jitter too');
select is(
  t.backoff(p_failures => 1000, p_base => '1 second', p_factor => 100, p_cap => '1 hour', p_jitter => 0),
  interval '1 hour',
  'the thousandth failure does not overflow'
);
select is(
  t.refusal($$select t.backoff(p_failures => 0, p_base => '1 second', p_factor => 2, p_cap => '1 hour', p_jitter => 0)$$) ->> 'code',
  'invalid_argument',
  'there is no wait before the first failure'
);

select * from finish();
