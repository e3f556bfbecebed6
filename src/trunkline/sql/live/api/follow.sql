-- Flags jobs and workflows as followed for three minutes; returns those that the caller can see. A follower renews the flag.
-- While the flag is set, each transaction that changes one of them notifies channel trunkline_live. A follower sets the flag
-- first and reads the state after that. One case remains: a transaction that checked for flags before this one was
-- committed, and that commits after the read. Polling finds its change.
-- A flag that lasts for two more minutes is not written again. Locks rows of followed in the order of the ids.
create or replace function trunkline.follow(p_ids uuid[])
returns uuid[]
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_ids uuid[];
  v_kinds text[];
  v_now timestamptz := trunkline.clock();
  v_scope text := trunkline.tenant_scope();
begin
  if array_ndims(p_ids) > 1 or cardinality(p_ids) > 1000 then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_ids', 'must_be', 'one list of at most 1000 ids')
    );
  end if;
  select array_agg(v.id order by v.id), array_agg(v.kind order by v.id)
  into v_ids, v_kinds
  from (
    select distinct on (i.id)
      i.id,
      case
        when exists (
          select
          from trunkline_internal.workflows as w
          where w.workflow_id = i.id and (v_scope is null or w.tenant = v_scope)
        ) then 'workflow'
        when coalesce(
          trunkline_internal.visible_live_state(p_job => i.id, p_scope => v_scope),
          trunkline_internal.visible_end(p_job => i.id, p_scope => v_scope)
        ) is not null then 'job'
      end as kind
    from unnest(p_ids) as i (id)
    where i.id is not null
  ) as v
  where v.kind is not null;
  insert into trunkline_internal.followed as f (followed_id, until, kind)
  select u.id, v_now + interval '3 minutes', u.kind
  from unnest(v_ids, v_kinds) as u (id, kind)
  order by u.id
  on conflict (followed_id) do update set until = excluded.until where f.until < v_now + interval '2 minutes';
  return coalesce(v_ids, '{}');
end;
$$;
comment on function trunkline.follow(uuid[]) is 'Flags jobs and workflows as followed for three minutes; returns those that the caller can see. A follower renews the flag.';
