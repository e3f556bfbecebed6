-- What a user may take: storage with reservations, operations of a day, and places in the queue.
-- requires: base, records, tasks
-- source: 2.3, 2.10, 2.17

create or replace function exports.used_bytes(p_user_id uuid)
returns bigint
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(sum(h.file_size), 0)::bigint
  from exports.export_history as h
  where h.user_id = p_user_id and h.removal_queued_at is null and h.deleted_at is null and h.expires_at > (select trunkline.clock())
$$;
comment on function exports.used_bytes(uuid) is 'Returns the bytes of a user''s exports that have neither expired nor been deleted.';

create or replace function exports.estimated_bytes(p_user_id uuid)
returns bigint
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    (
      select ceil(avg(n.file_size))::bigint
      from (
        select h.file_size from exports.export_history as h where h.user_id = p_user_id order by h.created_at desc limit 20
      ) as n
    ),
    (select s.estimate_bytes from exports.settings as s)
  )
$$;
comment on function exports.estimated_bytes(uuid) is 'Returns the size that an export of this user is expected to have: the mean of the newest twenty, or the estimate of the settings.';

create or replace function exports.close_ended(p_user_id uuid)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  update exports.requests as r
  set is_closed = true
  where r.user_id = p_user_id
    and not r.is_closed
    and not exists (
      select
      from trunkline.jobs as j
      where j.job_id = r.job_id and j.state in ('ready', 'scheduled', 'blocked', 'running')
    )
$$;
comment on function exports.close_ended(uuid) is 'Marks the requests of a user whose jobs have ended, so that they reserve nothing.';

create or replace function exports.live_requests(p_user_id uuid)
returns table (job_id uuid, reserved_bytes bigint, is_running boolean)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select r.job_id, r.reserved_bytes, j.state = 'running'
  from exports.requests as r
  join trunkline.jobs as j on j.job_id = r.job_id
  where r.user_id = p_user_id and not r.is_closed and j.state in ('ready', 'scheduled', 'blocked', 'running')
$$;
comment on function exports.live_requests(uuid) is 'Returns the exports of a user that wait or run, with the bytes that they reserve.';

create or replace function exports.spend_operations(p_user_id uuid, p_count integer)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_grant trunkline.grant_answer;
begin
  v_grant := trunkline.acquire(
    p_limit => 'exports-operations/{tenant}', p_cost => jsonb_build_object('requests', 0, 'units', p_count),
    p_tenant => p_user_id::text
  );
  if not v_grant.granted then
    perform exports.refuse(
      p_code => 'daily_quota', p_message => 'the operations of this day are used up',
      p_detail => jsonb_build_object('needed', p_count, 'free_at', v_grant.free_at)
    );
  end if;
  perform trunkline.settle(p_grant => v_grant.grant_id, p_actual => jsonb_build_object('units', p_count));
exception
  when sqlstate 'TL033' then
    -- More than the whole day has.
    perform exports.refuse(
      p_code => 'daily_quota', p_message => 'a day has fewer operations than the request needs',
      p_detail => jsonb_build_object('needed', p_count)
    );
end;
$$;
comment on function exports.spend_operations(uuid, integer) is 'Counts operations of a user''s day, or refuses them. Holds the user''s counter until the transaction ends, so requests of one user take turns.';

create or replace function exports.record_operation(p_user_id uuid default null, p_count integer default 1)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_count is null or p_count not between 1 and 1000 then
    perform exports.refuse(
      p_code => 'invalid_request', p_message => 'the number of operations is not valid',
      p_detail => jsonb_build_object('fields', jsonb_build_object('count', 'must be a whole number from 1 to 1000'))
    );
  end if;
  perform exports.spend_operations(p_user_id => exports.acting_user(p_user_id => p_user_id), p_count => p_count);
end;
$$;
comment on function exports.record_operation(uuid, integer) is 'Counts operations of another feature of the application in the 100 of a user''s day; refuses the call when they are used up.';

create or replace function exports.require_room(p_user_id uuid, p_bytes bigint)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit bigint := (select s.storage_bytes from exports.settings as s);
  v_reserved bigint;
  v_used bigint := exports.used_bytes(p_user_id => p_user_id);
begin
  select coalesce(sum(l.reserved_bytes), 0) into v_reserved from exports.live_requests(p_user_id => p_user_id) as l;
  if v_used + v_reserved >= v_limit or v_used + v_reserved + p_bytes > v_limit then
    perform exports.refuse(
      p_code => 'storage_full',
      p_message => format(
        'storage is full: %sMB / %sMB', exports.as_megabytes(p_bytes => v_used + v_reserved),
        trim_scale(exports.as_megabytes(p_bytes => v_limit))
      ),
      p_detail => jsonb_build_object(
        'usedMB', exports.as_megabytes(p_bytes => v_used + v_reserved), 'limitMB', exports.as_megabytes(p_bytes => v_limit),
        'neededMB', exports.as_megabytes(p_bytes => p_bytes)
      )
    );
  end if;
end;
$$;
comment on function exports.require_room(uuid, bigint) is 'Refuses an export for which the user''s storage has no room: kept exports and the estimates of live ones count.';

create or replace function exports.require_places(p_user_id uuid, p_count integer)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_live bigint;
  v_most integer := (select s.jobs_per_user from exports.settings as s);
begin
  select count(*) into v_live from exports.live_requests(p_user_id => p_user_id) as l;
  if v_live + p_count > v_most then
    perform exports.refuse(
      p_code => 'queue_full', p_message => format('%s of your exports wait or run, please wait', v_live),
      p_detail => jsonb_build_object('live', v_live, 'limit', v_most)
    );
  end if;
end;
$$;
comment on function exports.require_places(uuid, integer) is 'Refuses exports beyond what one user may have waiting and running.';

create or replace function exports.check_storage_quota(p_user_id uuid default null)
returns table (allowed boolean, "usedMB" numeric, "limitMB" numeric)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit bigint := (select s.storage_bytes from exports.settings as s);
  v_user uuid := exports.acting_user(p_user_id => p_user_id);
  v_used bigint;
begin
  select exports.used_bytes(p_user_id => v_user) + coalesce(sum(l.reserved_bytes), 0)
  into v_used
  from exports.live_requests(p_user_id => v_user) as l;
  return query
  select
    v_used < v_limit and v_used + exports.estimated_bytes(p_user_id => v_user) <= v_limit,
    exports.as_megabytes(p_bytes => v_used), exports.as_megabytes(p_bytes => v_limit);
end;
$$;
comment on function exports.check_storage_quota(uuid) is 'Returns whether another export fits into the user''s storage, with the megabytes used and reserved, and the limit.';
