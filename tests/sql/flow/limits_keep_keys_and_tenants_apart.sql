-- The keys of a limit's name are filled in so that different values never meet, and a tenant reaches only its own.
\ir ../helpers/tools.sql
\ir ../helpers/cases.sql
\ir ../../support/internals/frozen.sql
select plan(12);

set session authorization trunkline_operator;
select
  trunkline.set_limit('pair/{a}-{b}', '{"concurrency": 1}'), trunkline.set_limit('two/{a}/{b}', '{"concurrency": 1}'), trunkline.set_limit('odd/{a}é{b}', '{"concurrency": 1}'), trunkline.set_limit('end/{a}:x', '{"concurrency": 1}'),
  trunkline.set_limit('own/{tenant}', '{"concurrency": 1}'), trunkline.set_limit('of/{tenant}/{model}', '{"concurrency": 1}'), trunkline.set_limit('shared', '{"concurrency": 9}'), trunkline.set_limit('model/{model}', '{"concurrency": 9}'),
  trunkline.register_task('uses', p_limits => array['shared', 'model/{model}']), trunkline.register_task('names', p_limits => array['team/{tenant}']) \g /dev/null
set session authorization trunkline_worker;
-- The names that values are filled in to, by a grant for each.
create function pg_temp.filled(p_limit text, p_keys jsonb, p_tenant text default null) returns text language plpgsql as $$
declare
  v_reason text;
begin
  return (select g.granted || coalesce(' ' || g.reason, '') from trunkline.acquire(p_limit, p_keys => p_keys, p_tenant => p_tenant) as g);
exception
  when others then
    get stacked diagnostics v_reason = pg_exception_detail;
    return case when sqlstate like 'TL%' then v_reason::jsonb ->> 'code' else sqlerrm end;
end;
$$;
select is(
  array[
  pg_temp.filled('pair/{a}-{b}', '{"a": "x-y", "b": "z"}'), pg_temp.filled('pair/{a}-{b}', '{"a": "x", "b": "y-z"}'), pg_temp.filled('pair/{a}-{b}', '{"a": "x%2Dy", "b": "z"}'),
  pg_temp.filled('two/{a}/{b}', '{"a": "x/y", "b": "z"}'), pg_temp.filled('two/{a}/{b}', '{"a": "x", "b": "y/z"}'), pg_temp.filled('two/{a}/{b}', '{"a": "{x}", "b": "50%"}'),
  pg_temp.filled('odd/{a}é{b}', '{"a": "xéy", "b": "z"}'), pg_temp.filled('odd/{a}é{b}', '{"a": "x", "b": "yéz"}'), pg_temp.filled('end/{a}:x', '{"a": "1:x"}'), pg_temp.filled('end/{a}:x', '{"a": "1"}')
],
  '{true,true,true,true,true,true,true,true,true,true}',
  'values that would meet without their code'
);
select is(
  array[pg_temp.filled('pair/{a}-{b}', '{"a": "x-y", "b": "z"}'), pg_temp.filled('two/{a}/{b}', '{"a": "x/y", "b": "z"}'), pg_temp.filled('odd/{a}é{b}', '{"a": "xéy", "b": "z"}')],
  '{"false concurrency","false concurrency","false concurrency"}',
  'the same value again'
);
select is(
  array[pg_temp.filled('end/{a}:x', '{"a": 7}'), pg_temp.filled('end/{a}:x', '{"a": "7"}')],
  '{true,"false concurrency"}',
  'numbers are their text'
);
select is(
  array[pg_temp.filled('pair/{a}-{b}', '{"a": "x"}'), pg_temp.filled('pair/{a}-{b}', '{"a": "", "b": "z"}'), pg_temp.filled('pair/{a}-{b}', '{"a": "x", "b": null}'), pg_temp.filled('end/{a}:x', '{}')],
  '{limit_key_missing,limit_key_missing,limit_key_missing,limit_key_missing}',
  'a value that is missing'
);
select is(
  array[pg_temp.filled('pair/x%2Dy-z', '{}'), pg_temp.filled('pair/nobody-knows', '{}')],
  '{"false concurrency",unknown_limit}',
  'by the name that views show'
);
select is(
  array[pg_temp.filled('own/{tenant}', '{}', 'a'), pg_temp.filled('own/{tenant}', '{"tenant": "b"}'), pg_temp.filled('own/{tenant}', '{"tenant": "a"}'), pg_temp.filled('own/{tenant}', '{}')],
  '{true,true,"false concurrency",limit_key_missing}',
  'the tenant comes from the call or its keys'
);
set session authorization trunkline_operator;
select is(
  (select array_agg(b.name || ' of ' || b.limit order by b.name collate "C") from trunkline.buckets as b),
  '{"end/1:x of end/{a}:x","end/1:x:x of end/{a}:x","end/7:x of end/{a}:x","odd/x%C3%A9yéz of odd/{a}é{b}","odd/xéyéz of odd/{a}é{b}","own/a of own/{tenant}","own/b of own/{tenant}","pair/x%252Dy-z of pair/{a}-{b}","pair/x%2Dy-z of pair/{a}-{b}","pair/x-y-z of pair/{a}-{b}","two/%7Bx%7D/50%25 of two/{a}/{b}","two/x%2Fy/z of two/{a}/{b}","two/x/y%2Fz of two/{a}/{b}"}',
  'names and their limits'
);
-- A session of one tenant.
set session authorization trunkline_producer;
select trunkline.enqueue('uses', '{"model": "m"}', p_tenant => 'a'), trunkline.enqueue('uses', '{"model": "m"}', p_tenant => 'b') \g /dev/null
set session authorization trunkline_worker;
select c.job_id as job from trunkline.claim('w1', p_limit => 2) as c where c.tenant = 'a' \gset
create function pg_temp.reached(p_limit text, p_keys jsonb, p_job uuid default null, p_tenant text default null) returns text language plpgsql as $$
declare
  v_reason text;
begin
  perform trunkline.observe_limit(p_limit, '{}', p_keys, p_job, case when p_job is not null then 1 end);
  return 'reached';
exception
  when others then
    get stacked diagnostics v_reason = pg_exception_detail;
    return case when sqlstate like 'TL%' then v_reason::jsonb ->> 'code' else sqlerrm end;
end;
$$;
set trunkline.tenant = 'a';
select is(
  array[pg_temp.reached('own/{tenant}', '{}'), pg_temp.reached('own/a', '{}'), pg_temp.reached('of/{tenant}/{model}', '{"model": "m"}'), pg_temp.reached('of/a/m', '{}')],
  '{reached,reached,reached,reached}',
  'reaches limits of its tenant'
);
select is(
  array[pg_temp.reached('own/{tenant}', '{"tenant": "b"}'), pg_temp.reached('own/b', '{}'), pg_temp.reached('of/b/m', '{}'), pg_temp.reached('pair/{a}-{b}', '{"a": "x", "b": "y"}'), pg_temp.reached('team/a', '{}')],
  '{reached,tenant_denied,tenant_denied,tenant_denied,tenant_denied}',
  'and of no other'
);
select is(
  array[pg_temp.reached('shared', '{}'), pg_temp.reached('shared', '{}', :'job'), pg_temp.reached('model/{model}', '{"model": "m"}', :'job'), pg_temp.reached('model/{model}', '{"model": "n"}', :'job'), pg_temp.reached('nothing', '{}', :'job')],
  '{tenant_denied,reached,reached,tenant_denied,tenant_denied}',
  'shared ones within a job'
);
select is(
  array[pg_temp.filled('own/{tenant}', '{}', 'b'), pg_temp.filled('shared', '{}')],
  '{tenant_denied,tenant_denied}',
  'grants are for itself'
);
set trunkline.tenant = 'b';
select is(
  array[pg_temp.reached('shared', '{}', :'job'), pg_temp.reached('own/a', '{}', :'job')],
  '{tenant_denied,tenant_denied}',
  'another tenant''s job is no way in'
);
reset trunkline.tenant;


select * from finish();
