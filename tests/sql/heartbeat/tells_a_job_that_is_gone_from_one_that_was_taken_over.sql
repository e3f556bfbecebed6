-- RC-32: a lost attempt of a job that does not exist has the state gone, in every call that ends or extends attempts.
\ir ../helpers/tools.sql
select plan(7);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select t.started('mail') as running \gset
select t.started('mail') as ended \gset
select trunkline.complete(p_worker => 'w1', p_jobs => array[:'ended']::uuid[], p_attempts => array[1]) \g /dev/null
select t.dead('mail') as discarded \gset
set session authorization trunkline_operator;
select trunkline.discard(p_job => :'discarded') \g /dev/null
set session authorization trunkline_worker;

create function pg_temp.told(p_call text) returns text language plpgsql as $$
declare
  v_told text;
begin
  execute 'select string_agg(concat_ws($1, v.verdict, v.state), $2 order by v.place)'
    || ' from (select verdict, state, row_number() over () as place from trunkline.' || p_call || ') as v'
  into v_told using ' ', ', ';
  return v_told;
end;
$$;
select format('(''w1'', array[%L, %L]::uuid[], array[1, 7])', :'discarded', :'running') as about \gset
select is(pg_temp.told('heartbeat' || :'about'), 'lost gone, lost', 'heartbeat');
select is(pg_temp.told('complete' || :'about'), 'lost gone, lost', 'complete');
select is(pg_temp.told('fail' || :'about'), 'lost gone, lost', 'fail');
select is(pg_temp.told('release' || :'about'), 'lost gone, lost', 'release');
select is(pg_temp.told('snooze' || :'about'), 'lost gone, lost', 'snooze');
select is(pg_temp.told('acknowledge_cancel' || :'about'), 'lost gone, lost', 'acknowledge_cancel');
select is(pg_temp.told(format('heartbeat(''w1'', array[%L]::uuid[], array[1])', :'ended')), 'lost', 'one that has ended is not gone');

select * from finish();
