-- Notifies channel trunkline_live with those of these jobs and workflows, and workflows of these jobs, that somebody follows.
-- Costs almost nothing while nobody follows anything. The payload has up to 200 ids, never content, because every login of
-- the database can listen. It is sent when the transaction commits; equal payloads of one transaction are sent once.
-- Reads the flags without a lock. Called by every function that changes what a follower sees.
create or replace function trunkline_internal.notify_followers(p_ids uuid[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
as $$
declare
  v_followed uuid[];
  v_now timestamptz;
begin
  if not exists (select from trunkline_internal.followed) then
    return;
  end if;
  v_now := trunkline.clock();
  v_followed := array(
    select f.followed_id from trunkline_internal.followed as f where f.followed_id = any(p_ids) and f.until > v_now
  );
  if exists (select from trunkline_internal.followed as f where f.kind = 'workflow' and f.until > v_now) then
    v_followed := v_followed || array(
      select f.followed_id
      from (
        select w.workflow_id from trunkline_internal.waiting as w where w.job_id = any(p_ids) and w.workflow_id is not null
        union
        select r.workflow_id from trunkline_internal.running as r where r.job_id = any(p_ids) and r.workflow_id is not null
        union
        select d.workflow_id from trunkline_internal.dead as d where d.job_id = any(p_ids) and d.workflow_id is not null
        union
        select e.workflow_id
        from trunkline_internal.finished as e
        where e.job_id = any(p_ids) and e.workflow_id is not null and e.finished_at >= v_now - interval '1 minute'
      ) as j
      join trunkline_internal.followed as f on f.followed_id = j.workflow_id and f.until > v_now
    );
  end if;
  perform pg_notify('trunkline_live', g.ids)
  from (
    select string_agg(n.id::text, ' ' order by n.id) as ids
    from (
      select i.id, row_number() over (order by i.id) as place from (select distinct unnest(v_followed)) as i (id)
    ) as n
    group by (n.place - 1) / 200
  ) as g;
end;
$$;
comment on function trunkline_internal.notify_followers(uuid[]) is 'Notifies channel trunkline_live with those of these jobs and workflows, and workflows of these jobs, that somebody follows.';
