-- TA-16: one id never runs twice. Should a waiting job have the id of a running one, it goes to the dead letters under a new id and stops nobody.
\ir ../helpers/tools.sql
\ir ../../support/internals/internals.sql
select plan(8);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select t.started('mail') as running \gset
select t.let_wait(:'running', p_payload => '{"n": 1}') \g /dev/null
set session authorization trunkline_producer;
select job_id as next from trunkline.enqueue(p_task => 'mail') \gset

set session authorization trunkline_worker;
select results_eq($$select job_id from trunkline.claim(p_worker => 'w2', p_limit => 9)$$, array[:'next']::uuid[], 'the claim that meets it takes the rest');
select is_empty($$select * from trunkline.claim(p_worker => 'w2', p_limit => 9)$$, 'and the next one nothing');
select is((t.job(:'running')).worker, 'w1', 'the running job is untouched');
set session authorization trunkline_operator;
select results_eq('select reason, job_id <> ' || quote_literal(:'running') || ' from trunkline.dead_letters', $$values ('id_collision', true)$$, 'the other is a dead letter under a new id');
select is((select payload from trunkline.dead_letters cross join lateral trunkline.job(p_job => job_id)), '{"n": 1}'::jsonb, 'with its payload');
select is((select detail ->> 'running_job' from trunkline.events where kind = 'collided'), :'running'::text, 'and an event that names the running job');

-- Met from a position, as the last of its claim.
set session authorization trunkline_producer;
select job_id as more from trunkline.enqueue(p_task => 'mail') \gset
select t.let_wait(:'running', p_payload => '{"n": 2}') \g /dev/null
set session authorization trunkline_worker;
select results_eq(
  $$select job_id, position is not null from trunkline.claim(p_worker => 'w2', p_limit => 9, p_position => '{}')$$,
  format('values (%L::uuid, false), (null, true)', :'more'),
  'a claim from a position takes the rest too, and a row of its own carries the next position'
);
set session authorization trunkline_operator;
select is((select count(*) from trunkline.dead_letters), 2::bigint, 'and that one is a dead letter as well');

select * from finish();
