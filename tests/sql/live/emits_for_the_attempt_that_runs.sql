-- Emitted output: numbered, bounded, fenced by the attempt, and read from an offset.
\ir ../helpers/tools.sql
select plan(17);

create function t.text_after(p_job uuid, p_attempt integer, p_number integer) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select format('%s %s %s %s %s', l.state, l.attempt, l.chunk_number, l.has_more, l.chunks)
  from trunkline.live_jobs(array[p_job], array[p_attempt], array[p_number]) as l;
end;

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'talk', p_max_attempts => 5) \g /dev/null
select t.started('talk') as one \gset
select t.started('talk') as two \gset

select is(
  trunkline.emit('w1', array[:'one', :'one', :'two']::uuid[], array[1, 1, 1], array[1, 2, 1], array['a ', 'b ', 'other']),
  array['ok', 'ok', 'ok'], 'one call stores output of several attempts'
);
select is(
  trunkline.emit('w1', array[:'one', :'one']::uuid[], array[1, 1], array[2, 3], array['b ', 'c']),
  array['ok', 'ok'], 'a repeated chunk is accepted'
);
select is(t.text_after(:'one', 0, 0), 'running 1 3 f a b c', 'and stored once');
select is(t.text_after(:'one', 1, 2), 'running 1 3 f c', 'a follower reads on after its offset');
select is(t.text_after(:'one', 1, 3), 'running 1  f ', 'where nothing may be left');
select is(t.text_after(:'one', 9, 7), 'running 1 3 f a b c', 'an offset of another attempt starts from the beginning');
select is(
  trunkline.emit('w2', array[:'one']::uuid[], array[1], array[4], array['x']), array['lost'], 'another worker emits nothing'
);
select is(
  trunkline.emit('w1', array[:'one', :'two']::uuid[], array[2, 1], array[4, 2], array['x', '!']),
  array['lost', 'ok'], 'nor does another attempt, but the rest of the batch does'
);
select is(
  (t.refusal(format($$select trunkline.emit('w1', array[%L]::uuid[], array[1], array[4], array[repeat('x', 65537)])$$, :'one'))) ->> 'argument',
  'p_chunks', 'a chunk of more than 64 KB is refused'
);
select is(
  (t.refusal(format($$select trunkline.emit('w1', array[%L]::uuid[], array[1], array[4], array[''])$$, :'one'))) ->> 'code',
  'invalid_argument', 'and an empty one'
);
select is(
  trunkline.emit('w1', array_fill(:'two'::uuid, array[16]), array_fill(1, array[16]), array(select generate_series(3, 18)),
    array_fill(repeat('y', 65536), array[16])),
  array_fill('ok'::text, array[15]) || array['full'], 'an attempt emits 1 MB at most'
);
set session authorization trunkline_producer;
select is(
  (select chunk_number || ' ' || has_more from trunkline.live_jobs(array[:'two']::uuid[], array[1], array[2])),
  '3 true', 'a call returns 64 KB and says that there is more'
);

-- A new attempt starts with nothing.
set session authorization trunkline_worker;
select v.state from trunkline.fail('w1', array[:'one']::uuid[], array[1], p_delays => array[interval '0']) as v \g /dev/null
select is(t.text_after(:'one', 0, 0), 'scheduled 1 3 f a b c', 'the output stays while the job waits');
select c.attempt from trunkline.claim('w1', p_tasks => array['talk']) as c \g /dev/null
select is(t.text_after(:'one', 1, 3), 'running 2  f ', 'a new attempt has emitted nothing');
select is(trunkline.emit('w1', array[:'one']::uuid[], array[2], array[1], array['new']), array['ok'], 'until it does');
select is(t.text_after(:'one', 1, 3), 'running 2 1 f new', 'and is read from its beginning');

select v.state from trunkline.complete('w1', array[:'one', :'two']::uuid[], array[2, 1]) as v \g /dev/null
select is(
  trunkline.emit('w1', array[:'one']::uuid[], array[2], array[2], array['late']), array['lost'], 'an ended attempt emits nothing'
);
select * from finish();
