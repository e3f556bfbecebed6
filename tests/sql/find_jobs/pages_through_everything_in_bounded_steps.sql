-- EX-61: every job that fits is found, page by page, whether it is new or lies behind many that do not fit.
\ir ../helpers/tools.sql
select plan(9);

set session authorization trunkline_operator;
select trunkline.register_task(p_task => 'rare'), trunkline.register_task(p_task => 'mail') \g /dev/null
select job_id as oldest from trunkline.enqueue(p_task => 'rare') \gset
select trunkline_test.move_time('1 second') \g /dev/null
select count(*) from generate_series(1, 21) as batch,
  lateral (select trunkline.enqueue_batch('mail', (select jsonb_agg('{}'::jsonb) from generate_series(1, 1000 + 0 * batch)))) as b \g /dev/null
select trunkline_test.move_time('1 second') \g /dev/null
select job_id as newest from trunkline.enqueue(p_task => 'rare') \gset

create function pg_temp.walked(p_limit integer, p_task text) returns table (page integer, job_id uuid) language plpgsql as $$
declare
  v_next uuid;
  v_page trunkline.job_page;
begin
  page := 0;
  loop
    v_page := trunkline.find_jobs(p_task => p_task, p_limit => p_limit, p_before => v_next);
    page := page + 1;
    return query select walked.page, j.job_id from unnest(v_page.jobs) as j;
    exit when v_page.next is null;
    v_next := v_page.next;
  end loop;
end;
$$;
select is((trunkline.find_jobs(p_task => 'rare')).jobs[1].job_id, :'newest'::uuid, 'the newest is found at once');
select is(cardinality((trunkline.find_jobs(p_task => 'rare')).jobs), 1, 'the one behind 21,000 others is not searched for');
select isnt((trunkline.find_jobs(p_task => 'rare')).next, null, 'but where to go on is told');
select is((select array_agg(job_id order by page) from pg_temp.walked(100, 'rare')), array[:'newest', :'oldest']::uuid[], 'going on finds it');
select is((select count(distinct job_id) from pg_temp.walked(10000, 'mail')), 21000::bigint, 'a walk finds each job');
select is((select count(*) from pg_temp.walked(10000, 'mail')), 21000::bigint, 'once');
select is((select array_agg(j.job_id) from unnest((trunkline.find_jobs(p_limit => 50)).jobs) as j), (select array_agg(job_id) from trunkline.list_jobs(p_limit => 50)), 'without a filter it is the page of list_jobs');
select is((select count(*) from trunkline.list_jobs(p_task => 'rare')), 2::bigint, 'list_jobs reads on until the page is full');
select is((trunkline.find_jobs(p_states => '{running}')).next, null, 'tables without the states are not read');

select * from finish();
