-- EX-17, EX-36: a session that acts for one tenant claims, sees and ends the jobs of that tenant only.
\ir ../helpers/tools.sql
select plan(9);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select job_id as theirs from trunkline.enqueue(p_task => 'mail', p_tenant => 'other') \gset
select job_id as ours from trunkline.enqueue(p_task => 'mail', p_tenant => 'acme') \gset
select job_id as nobodys from trunkline.enqueue(p_task => 'mail') \gset

set trunkline.tenant = 'acme';
select is((select array_agg(job_id) from trunkline.jobs), array[:'ours']::uuid[], 'a producer sees its own jobs');
select is((select count(*) from trunkline.job(p_job => :'theirs')), 0::bigint, 'no row for a job of another tenant');
select is((select count(*) from trunkline.job(p_job => :'nobodys')), 0::bigint, 'nor for one without a tenant');
select is(
  t.refusal(format('select trunkline.cancel(p_job => %L)', :'theirs')) ->> 'code',
  'unknown_job',
  'it cannot be cancelled, nor told from one that does not exist'
);
select is(
  t.refusal($$select trunkline.enqueue(p_task => 'mail', p_tenant => 'other')$$) ->> 'code',
  'tenant_denied',
  'nor can a job be made for another tenant'
);
select job_id as silent from trunkline.enqueue(p_task => 'mail') \gset
select is((t.job(:'silent')).tenant, 'acme', 'without a tenant a new job is the session''s');

set session authorization trunkline_worker;
select is(
  (select array_agg(distinct tenant) from trunkline.claim(p_worker => 'w1', p_limit => 9)),
  array['acme'],
  'a worker for one tenant claims its jobs only'
);
reset trunkline.tenant;
select is((select count(*) from trunkline.claim(p_worker => 'w2', p_limit => 9)), 2::bigint, 'the others wait for other workers');
set trunkline.tenant = 'acme';
select is(
  (select verdict from trunkline.complete(p_worker => 'w2', p_jobs => array[:'theirs']::uuid[], p_attempts => array[1])),
  'lost',
  'and cannot be ended by it'
);

select * from finish();
