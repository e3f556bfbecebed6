-- Returns the workflow that already has one of the keys of a graph, or null if the keys are new and now taken for the given one.
-- Waits for a concurrent start with the same key to commit or roll back. An idempotency key stands for one graph; a unique
-- key counts within (tenant, name) until the workflow ends. Locks: idempotency key, then unique key.
create or replace function trunkline_internal.known_workflow(p_graph jsonb, p_tenant text, p_workflow uuid, p_now timestamptz)
returns uuid
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_hash bigint := jsonb_hash_extended(p_graph - '{idempotency_key,unique_key}'::text[], 0);
  v_key record;
  v_known record;
begin
  for v_key in
    select k.*
    from (
      values
        (1, 'idempotency', '', p_graph ->> 'idempotency_key'),
        (2, 'unique', p_graph ->> 'name', p_graph ->> 'unique_key')
    ) as k (number, kind, name, key)
    where k.key is not null
    order by k.number
  loop
    for v_round in 1..3 loop
      insert into trunkline_internal.workflow_keys (tenant, kind, name, key, workflow_id, expires_at, graph_hash)
      values (
        coalesce(p_tenant, ''), v_key.kind, v_key.name, v_key.key, p_workflow,
        case when v_key.kind = 'idempotency' then p_now + trunkline_internal.setting(p_name => 'idempotency_retention')::interval end,
        v_hash
      )
      on conflict (tenant, kind, name, key) do update
      set workflow_id = excluded.workflow_id, expires_at = excluded.expires_at, graph_hash = excluded.graph_hash
      where workflow_keys.expires_at <= p_now;
      exit when found;
      select k.workflow_id, k.graph_hash into v_known
      from trunkline_internal.workflow_keys as k
      where k.tenant = coalesce(p_tenant, '') and k.kind = v_key.kind and k.name = v_key.name and k.key = v_key.key;
      if found then
        if v_key.kind = 'idempotency' and v_known.graph_hash <> v_hash then
          perform trunkline_internal.refuse(
            p_name => 'idempotency_mismatch',
            p_detail => jsonb_build_object(
              'idempotency_key', v_key.key, 'workflow', v_known.workflow_id, 'differs', array['graph']
            )
          );
        end if;
        -- The key was taken for this workflow, which will not be created.
        delete from trunkline_internal.workflow_keys as k where k.workflow_id = p_workflow;
        return v_known.workflow_id;
      end if;
      if v_round = 3 then
        raise exception using errcode = 'serialization_failure', message = 'key of the workflow kept changing';
      end if;
    end loop;
  end loop;
  return null;
end;
$$;
comment on function trunkline_internal.known_workflow(jsonb, text, uuid, timestamptz) is 'Returns the workflow that already has one of the keys of a graph, or null if the keys are new and now taken for the given one.';
