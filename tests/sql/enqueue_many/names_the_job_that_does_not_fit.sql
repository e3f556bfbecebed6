-- EX-12: a batch of a thousand with one bad job says which one it was, in each way it can be bad.
\ir ../helpers/tools.sql
select plan(15);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail') \g /dev/null
create function pg_temp.index_of(p_bad text) returns text
language sql as $$
  select (r ->> 'code') || ' ' || coalesce(r ->> 'index', 'without index')
  from t.refusal(format(
    'select trunkline.enqueue_many(p_jobs => %L)',
    '[{"task": "mail"}, {"task": "mail", "delay": 3}, ' || p_bad || ', {"task": "mail"}, ' || p_bad || ']'
  )) as r
$$;
select is(pg_temp.index_of('{"task": "mail", "priority": "high"}'), 'invalid_argument 2', 'a priority that is no number');
select is(pg_temp.index_of('{"task": "mail", "run_at": "soon"}'), 'invalid_argument 2', 'a time that is none');
select is(pg_temp.index_of('{"task": "mail", "delay": "a while"}'), 'invalid_argument 2', 'a delay that is none');
select is(pg_temp.index_of('{"task": "mail", "delay": "170000000 years"}'), 'invalid_argument 2', 'a delay beyond all times');
select is(pg_temp.index_of('{"task": "mail", "max_attempts": 3000000000}'), 'invalid_argument 2', 'a number that is too large');
select is(pg_temp.index_of('{"task": "mail", "tags": "x"}'), 'invalid_argument 2', 'tags that are no list');
select is(pg_temp.index_of('{"task": "mail", "unique_key": "k", "priority": "high"}'), 'invalid_argument 2', 'beside a key');
select is(pg_temp.index_of('{"task": "mail", "accepted": "perhaps"}'), 'invalid_argument 2', 'accepted that is no boolean');
select is(pg_temp.index_of('3'), 'invalid_argument 2', 'a job that is no object');
select is(pg_temp.index_of('{"task": "mail", "max_attempts": 0}'), 'invalid_argument 2', 'a value of the right type that is refused');
select is(pg_temp.index_of('{"task": "mail", "payload": 3}'), 'payload_not_object 2', 'a payload likewise');
select is(
  pg_temp.index_of(format('{"task": "mail", "queue": "%s"}', repeat('q', 201))), 'invalid_argument 2', 'a name of a queue that is too long'
);
select is(
  pg_temp.index_of(format('{"task": "mail", "tenant": "%s"}', repeat('t', 401))), 'invalid_argument 2', 'a tenant likewise'
);
select is(
  pg_temp.index_of(format('{"task": "mail", "correlation_id": "%s"}', repeat('c', 201))), 'invalid_argument 2', 'a correlation id likewise'
);
select is((select count(*) from trunkline.jobs), 0::bigint, 'and no job of the batch is there');

select * from finish();
