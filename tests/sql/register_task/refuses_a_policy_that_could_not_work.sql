-- CP-38, CP-64: a bad policy is refused when it is written, naming the argument, not when a worker claims.
\ir ../helpers/tools.sql
select plan(16);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail', p_lease => '60 seconds') \g /dev/null

create function pg_temp.argument(p_arguments text) returns text
language sql as $$
  select case when r ->> 'sqlstate' = 'TL022' then r ->> 'argument' else r::text end
  from t.refusal(format('select trunkline.register_task(%s)', p_arguments)) as r
$$;
select is(pg_temp.argument($$p_task => null$$), 'p_task', 'no name');
select is(pg_temp.argument($$p_task => repeat('x', 201)$$), 'p_task', 'an endless name');
select is(pg_temp.argument($$p_task => 'mail', p_queue => ''$$), 'p_queue', 'an empty queue');
select is(pg_temp.argument($$p_task => 'mail', p_lease => '0'$$), 'p_lease', 'no lease');
select is(pg_temp.argument($$p_task => 'mail', p_lease => '-5 minutes'$$), 'p_lease', 'a lease below zero');
select is(pg_temp.argument($$p_task => 'mail', p_hard_limit => '0'$$), 'p_hard_limit', 'no time to run');
select is(pg_temp.argument($$p_task => 'mail', p_max_attempts => 0$$), 'p_max_attempts', 'no attempts');
select is(pg_temp.argument($$p_task => 'mail', p_crash_limit => 0$$), 'p_crash_limit', 'no crashes');
select is(pg_temp.argument($$p_task => 'mail', p_unique_until => 'never'$$), 'p_unique_until', 'a key for ever');
select is(pg_temp.argument($$p_task => 'mail', p_backoff => '[1]'$$), 'p_backoff', 'a back-off that is no object');
select is(pg_temp.argument($$p_task => 'mail', p_backoff => '{"base": "10 s"}'$$), 'p_backoff', 'a base that is no number');
select is(pg_temp.argument($$p_task => 'mail', p_backoff => '{"base": -1}'$$), 'p_backoff', 'a base below zero');
select is(pg_temp.argument($$p_task => 'mail', p_backoff => '{"factor": 0.5}'$$), 'p_backoff', 'a back-off that shrinks');
select is(pg_temp.argument($$p_task => 'mail', p_backoff => '{"jiter": 0.5}'$$), 'p_backoff', 'a misspelt field');
select is(t.refusal($$select trunkline.register_task(p_task => 'mail', p_priority => 50)$$) ->> 'code', 'priority_out_of_range', 'a priority out of range has its own refusal');
select is((select lease from trunkline.tasks where task = 'mail'), interval '60 seconds', 'the policy is what it was');

select * from finish();
