-- Copies the payloads that jobs still need from a span of days to today; returns whether nothing refers to the span any more.
-- Skips rows another call holds: the span is then dropped another time.
create or replace function trunkline_internal.rescue_bodies(p_lower date, p_upper date, p_today date)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  with needed as materialized (
    select w.job_id, w.payload_day from trunkline_internal.waiting as w
    where w.payload_day >= p_lower and w.payload_day < p_upper for update of w skip locked
  ),
  copied as (
    insert into trunkline_internal.bodies (day, job_id, kind, body)
    select p_today, b.job_id, b.kind, b.body
    from needed as n
    join trunkline_internal.bodies as b on b.job_id = n.job_id and b.kind = 'payload' and b.day = n.payload_day
  )
  update trunkline_internal.waiting as w set payload_day = p_today from needed as n where w.job_id = n.job_id;
  with needed as materialized (
    select r.job_id, r.payload_day from trunkline_internal.running as r
    where r.payload_day >= p_lower and r.payload_day < p_upper for update of r skip locked
  ),
  copied as (
    insert into trunkline_internal.bodies (day, job_id, kind, body)
    select p_today, b.job_id, b.kind, b.body
    from needed as n
    join trunkline_internal.bodies as b on b.job_id = n.job_id and b.kind = 'payload' and b.day = n.payload_day
  )
  update trunkline_internal.running as r set payload_day = p_today from needed as n where r.job_id = n.job_id;
  with needed as materialized (
    select d.job_id, d.payload_day from trunkline_internal.dead as d
    where d.payload_day >= p_lower and d.payload_day < p_upper for update of d skip locked
  ),
  copied as (
    insert into trunkline_internal.bodies (day, job_id, kind, body)
    select p_today, b.job_id, b.kind, b.body
    from needed as n
    join trunkline_internal.bodies as b on b.job_id = n.job_id and b.kind = 'payload' and b.day = n.payload_day
  )
  update trunkline_internal.dead as d set payload_day = p_today from needed as n where d.job_id = n.job_id;
  with needed as materialized (
    select f.job_id, f.finished_at, f.payload_day from trunkline_internal.finished as f
    where f.payload_day >= p_lower and f.payload_day < p_upper for update of f skip locked
  ),
  copied as (
    insert into trunkline_internal.bodies (day, job_id, kind, body)
    select p_today, b.job_id, b.kind, b.body
    from needed as n
    join trunkline_internal.bodies as b on b.job_id = n.job_id and b.kind = 'payload' and b.day = n.payload_day
  )
  update trunkline_internal.finished as f set payload_day = p_today
  from needed as n
  where f.job_id = n.job_id and f.finished_at = n.finished_at;
  return not exists (
    select from trunkline_internal.waiting as w where w.payload_day >= p_lower and w.payload_day < p_upper
    union all
    select from trunkline_internal.running as r where r.payload_day >= p_lower and r.payload_day < p_upper
    union all
    select from trunkline_internal.dead as d where d.payload_day >= p_lower and d.payload_day < p_upper
    union all
    select from trunkline_internal.finished as f
    where (f.payload_day >= p_lower and f.payload_day < p_upper)
      or (f.result_day >= p_lower and f.result_day < p_upper)
  );
end;
$$;
comment on function trunkline_internal.rescue_bodies(date, date, date) is 'Copies the payloads that jobs still need from a span of days to today; returns whether nothing refers to the span any more.';
