-- A worker of another tenant cannot claim the job, so nothing is put back for it.
\ir ../helpers/tools.sql
select plan(3);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select trunkline.enqueue(p_task => 'mail', p_tenant => 'a') from generate_series(1, 3) \g /dev/null
set session authorization trunkline_worker;
select trunkline.register_worker(p_worker => 'w1', p_detail => '{"signatures": {"mail": "old"}}') \g /dev/null

-- What becomes of the next job when a worker that acts for that tenant has other code.
create function pg_temp.handed(p_tenant text) returns text language plpgsql as $$
declare
  v_answer trunkline.handover;
  v_job uuid;
begin
  perform set_config('trunkline.tenant', p_tenant, false);
  perform trunkline.register_worker(
    p_worker => 'of ' || p_tenant, p_detail => '{"signatures": {"mail": "new"}}'
  );
  perform set_config('trunkline.tenant', '', false);
  select c.job_id into strict v_job from trunkline.claim(p_worker => 'w1') as c;
  select h.* into strict v_answer from trunkline.hand_over(p_worker => 'w1', p_jobs => array[v_job], p_attempts => array[1]) as h;
  return concat_ws(' ', v_answer.state, v_answer.other_worker);
end;
$$;
select is(pg_temp.handed('b'), 'dead', 'one of another tenant never gets it');
select is(pg_temp.handed('a'), 'scheduled of a', 'one of its own tenant does');
select is(pg_temp.handed(''), 'scheduled of ', 'so does one of all tenants, here the newest');

select * from finish();
