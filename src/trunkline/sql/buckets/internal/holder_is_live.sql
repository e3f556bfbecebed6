-- Returns whether a holder still has its slot: a job that runs, or a grant that is neither settled nor expired.
-- A grant of a job lasts as long as the attempt.
create or replace function trunkline_internal.holder_is_live(p_holder uuid, p_now timestamptz)
returns boolean
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (select from trunkline_internal.running as r where r.job_id = p_holder)
    or exists (
      select
      from trunkline_internal.grants as g
      where g.grant_id = p_holder
        and g.settled_at is null
        and case
          when g.job_id is null then g.expires_at > p_now
          else exists (select from trunkline_internal.running as r where r.job_id = g.job_id and r.attempt = g.attempt)
        end
    );
end;
$$;
comment on function trunkline_internal.holder_is_live(uuid, timestamptz) is 'Returns whether a holder still has its slot: a job that runs, or a grant that is neither settled nor expired.';
