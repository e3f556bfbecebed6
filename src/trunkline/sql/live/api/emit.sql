-- Stores partial output of running attempts of a worker; returns a verdict for each chunk in the order of the request: ok, full or lost.
-- Lost: another attempt owns the job, or it has ended; nothing was stored. Full: the attempt would have emitted more than 1 MB.
-- A chunk has at most 64 KB. The worker numbers the chunks of an attempt from 1; a chunk that is sent again is stored once.
-- The first chunk of an attempt removes those of earlier ones. Locks the rows of running in id order, so that no attempt
-- ends before the commit; heartbeats do not wait for that.
create or replace function trunkline.emit(
  p_worker text,
  p_jobs uuid[],
  p_attempts integer[],
  p_numbers integer[],
  p_chunks text[]
)
returns text[]
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  c_most constant integer := 1048576;
  v_attempts integer[];
  v_full boolean[];
  v_held uuid[];
  v_jobs uuid[];
  v_new uuid[];
  v_now timestamptz;
  v_scope text := trunkline.tenant_scope();
begin
  perform trunkline_internal.check_batch(
    p_worker => p_worker, p_jobs => p_jobs, p_attempts => p_attempts,
    p_others => array[cardinality(p_numbers), cardinality(p_chunks)]
  );
  if exists (
    select
    from unnest(p_numbers, p_chunks) as c (number, chunk)
    where c.number is null or c.number < 1 or c.chunk is null or octet_length(c.chunk) not between 1 and 65536
  ) then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object(
        'argument', 'p_chunks', 'must_be', 'texts of 1 to 65536 bytes, numbered from 1 within their attempt'
      )
    );
  end if;
  select array_agg(a.job_id order by a.job_id), array_agg(a.attempt order by a.job_id)
  into v_jobs, v_attempts
  from (
    select a.job_id, max(a.attempt) as attempt from unnest(p_jobs, p_attempts) as a (job_id, attempt) group by a.job_id
  ) as a;
  with held as materialized (
    select r.job_id
    from trunkline_internal.running as r
    where r.job_id = any(v_jobs)
      and r.attempt = v_attempts[width_bucket(r.job_id, v_jobs)]
      and r.worker = p_worker
      and (v_scope is null or r.tenant = v_scope)
    order by r.job_id
    for key share of r
  )
  select array_agg(h.job_id) into v_held from held as h;
  v_now := trunkline.clock();
  v_new := array(
    select a.job_id
    from unnest(p_jobs, p_attempts, p_numbers) as a (job_id, attempt, number)
    where a.number = 1 and a.attempt > 1 and a.job_id = any(v_held)
  );
  if cardinality(v_new) > 0 then
    delete from trunkline_internal.emitted_chunks as c
    where c.job_id = any(v_new) and c.attempt < v_attempts[width_bucket(c.job_id, v_jobs)];
  end if;
  with sizes as materialized (
    select
      a.place, a.job_id, a.attempt, a.number, a.chunk,
      coalesce(b.bytes, 0) + sum(octet_length(a.chunk)) over (partition by a.job_id order by a.number) as bytes
    from unnest(p_jobs, p_attempts, p_numbers, p_chunks) with ordinality as a (job_id, attempt, number, chunk, place)
    left join lateral (
      select c.bytes
      from trunkline_internal.emitted_chunks as c
      where c.job_id = a.job_id
        and c.attempt = a.attempt
        and c.number < (select min(m.number) from unnest(p_jobs, p_numbers) as m (job_id, number) where m.job_id = a.job_id)
      order by c.number desc
      limit 1
    ) as b on true
    where a.job_id = any(v_held) and a.attempt = v_attempts[width_bucket(a.job_id, v_jobs)]
  ),
  stored as (
    insert into trunkline_internal.emitted_chunks (job_id, emitted_at, attempt, number, bytes, tenant, chunk)
    select s.job_id, v_now, s.attempt, s.number, s.bytes, r.tenant, s.chunk
    from sizes as s
    join trunkline_internal.running as r on r.job_id = s.job_id
    where s.bytes <= c_most
    on conflict do nothing
  )
  select array_agg(s.bytes > c_most order by a.place)
  into v_full
  from generate_series(1, cardinality(p_jobs)) as a (place)
  left join sizes as s on s.place = a.place;
  if exists (select from trunkline_internal.followed) then
    perform trunkline_internal.notify_followers(p_ids => v_held);
  end if;
  return array(
    select case when f.is_full is null then 'lost' when f.is_full then 'full' else 'ok' end
    from unnest(v_full) with ordinality as f (is_full, place)
    order by f.place
  );
end;
$$;
comment on function trunkline.emit(text, uuid[], integer[], integer[], text[]) is 'Stores partial output of running attempts of a worker; returns a verdict for each chunk in the order of the request: ok, full or lost.';
