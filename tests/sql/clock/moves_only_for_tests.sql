-- The engine's clock follows the tests' shift and nothing that a session can set.
select plan(4);

select is(session_user::text, 'trunkline_installer', 'tests begin as the installer role');
select ok(abs(extract(epoch from trunkline.clock() - clock_timestamp())) < 1, 'no shift at first');
select is(trunkline_test.move_time('3 days'), interval '3 days', 'the shift is added up');
select ok(
  trunkline.clock() - clock_timestamp() between interval '2 days 23:59' and interval '3 days',
  'the engine sees the moved time'
);

select * from finish();
