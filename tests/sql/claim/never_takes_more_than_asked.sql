-- CP-30, EX-20, TA-14, TA-15: a claim takes at most what it asks for, and its limit is checked.
\ir ../helpers/tools.sql
select plan(9);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select count(*) from trunkline.enqueue_many((select jsonb_agg('{"task": "mail"}'::jsonb) from generate_series(1, 60))) \g /dev/null
select count(*) from trunkline.enqueue_many((select jsonb_agg('{"task": "mail", "priority": 1}'::jsonb) from generate_series(1, 3))) \g /dev/null

set session authorization trunkline_worker;
select is((select count(*) from trunkline.claim(p_worker => 'w1')), 1::bigint, 'one when nothing is said');
select is((select count(*) from trunkline.claim(p_worker => 'w1', p_limit => 5)), 5::bigint, 'five across two priorities');
select is((select count(*) from trunkline.claim(p_worker => 'w1', p_limit => 50)), 50::bigint, 'fifty');
select is((select count(*) from trunkline.claim(p_worker => 'w1', p_limit => 50)), 7::bigint, 'the rest and no more');
select is(t.refusal($$select trunkline.claim(p_worker => 'w1', p_limit => 0)$$) ->> 'sqlstate', 'TL006', 'zero is refused');
select is(
  t.refusal($$select trunkline.claim(p_worker => 'w1', p_limit => 10001)$$) - 'message' - 'sqlstate',
  '{"code": "limit_out_of_range", "limit": 10001, "minimum": 1, "maximum": 10000}'::jsonb,
  'too many are refused, naming the range'
);
select is(t.refusal($$select trunkline.claim(p_worker => 'w1', p_limit => null)$$) ->> 'code', 'limit_out_of_range', 'so is null');
select is(t.refusal($$select trunkline.claim(p_worker => null)$$) ->> 'code', 'worker_required', 'a claim names its worker');
select is(t.refusal($$select trunkline.claim(p_worker => '')$$) ->> 'code', 'worker_required', 'and not as an empty text');

select * from finish();
