-- A look behind a position takes what rolled-back claims left there and nothing that claims from that place will find.
\ir ../helpers/tools.sql
\ir ../../support/internals/internals.sql
select plan(6);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'work') \g /dev/null
reset session authorization;

-- Claims until the place is accepted, which takes the end of the transaction that proposed it.
create temporary table place (position jsonb);
insert into place values ('{}');
create function pg_temp.go_on() returns void language plpgsql as $$
begin
  perform trunkline.enqueue(p_task => 'work');
end;
$$;
\set claim 'update place set position = (select c.position from trunkline.claim(p_worker => \'w\', p_limit => 10, p_position => (select p.position from place as p)) as c order by c.position is null limit 1);'
select pg_temp.go_on() \g /dev/null
:claim
select trunkline_test.move_time('1 second') \g /dev/null
select pg_temp.go_on() \g /dev/null
:claim
select trunkline_test.move_time('1 second') \g /dev/null
select pg_temp.go_on() \g /dev/null
:claim
select cmp_ok((select (p.position -> 'lanes' -> 'default/0' ->> 0)::bigint from place as p), '>', 1::bigint, 'there is something behind the place');

select trunkline.enqueue(p_task => 'work', p_payload => '{"left": true}') \g /dev/null
select t.renumber(1) \g /dev/null
select trunkline.enqueue(p_task => 'work', p_payload => '{"left": false}') \g /dev/null
select trunkline.enqueue(p_task => 'work', p_payload => '{"left": false}', p_priority => 20) \g /dev/null

select is(
  (
    select jsonb_agg(jsonb_build_array(c.payload, c.position))
    from trunkline.claim(p_worker => 'looker', p_limit => 10, p_position => (select jsonb_build_object('behind', p.position) from place as p)) as c
  ),
  '[[{"left": true}, null]]'::jsonb,
  'it takes what was left and carries no position'
);
select is_empty(
  $$select * from trunkline.claim(p_worker => 'looker', p_limit => 10, p_position => (select jsonb_build_object('behind', p.position) from place as p))$$,
  'and then finds nothing'
);
select is(
  (
    select count(*)
    from trunkline.claim(p_worker => 'w', p_limit => 10, p_position => (select p.position from place as p)) as c
    where c.payload = '{"left": false}'
  ),
  2::bigint,
  'what is newer was left to claims'
);
select trunkline.enqueue(p_task => 'work', p_payload => '{"n": 1}') \g /dev/null
select is(
  (select jsonb_agg(c.payload) from trunkline.claim(p_worker => 'looker', p_limit => 10, p_position => '{"behind": {"for": "others"}}') as c),
  '[{"n": 1}]'::jsonb,
  'behind a place that is no place of this claim it looks everywhere'
);
select is_empty(
  $$select * from trunkline.claim(p_worker => 'looker', p_limit => 10, p_position => '{"behind": null}')$$,
  'and loses nothing by nonsense'
);

select * from finish();
