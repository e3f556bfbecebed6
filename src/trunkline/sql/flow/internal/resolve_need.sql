-- Says what a job takes of its task's limits: {requests, tokens, units, limit, gate, limit, gate ...}. Refuses what could never run.
-- Each limit by its filled-in name if there is one of that name, else by the name with its keys.
create or replace function trunkline_internal.resolve_need(
  p_task text,
  p_limits text[],
  p_cost jsonb,
  p_payload jsonb,
  p_tenant text
)
returns bigint[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_gate bigint;
  v_gates bigint[] := array[]::bigint[];
  v_limit trunkline_internal.limits;
  v_name text;
  v_requests bigint;
  v_template text;
  v_tokens bigint;
  v_units bigint;
begin
  if p_cost is not null and not trunkline_internal.is_cost(p_cost => p_cost) then
    perform trunkline_internal.refuse(
      p_name => 'invalid_cost',
      p_detail => jsonb_build_object(
        'task', p_task, 'cost', p_cost, 'must_be', 'whole numbers from 0 to 10^12 as requests, tokens and units'
      )
    );
  end if;
  v_requests := coalesce((p_cost ->> 'requests')::bigint, 1);
  v_tokens := coalesce((p_cost ->> 'tokens')::bigint, 0);
  v_units := coalesce((p_cost ->> 'units')::bigint, 0);
  foreach v_template in array p_limits loop
    v_name := trunkline_internal.fill_limit_name(p_template => v_template, p_payload => p_payload, p_tenant => p_tenant);
    if v_name is null or octet_length(v_name) > 400 then
      perform trunkline_internal.refuse(
        p_name => 'limit_key_missing', p_detail => jsonb_build_object('task', p_task, 'limit', v_template)
      );
    end if;
    select l.* into v_limit
    from trunkline_internal.limits as l
    where l.name in (v_name, v_template)
    order by l.name <> v_name
    limit 1;
    if not found then
      perform trunkline_internal.refuse(
        p_name => 'unknown_limit',
        p_detail => jsonb_build_object(
          'task', p_task, 'limit', v_name,
          'known', coalesce((
            select jsonb_agg(k.name) from (select l.name from trunkline_internal.limits as l order by l.name limit 200) as k
          ), '[]'::jsonb)
        )
      );
    end if;
    if trunkline_internal.never_fits(p_limit => v_limit, p_requests => v_requests, p_tokens => v_tokens) then
      perform trunkline_internal.refuse(
        p_name => 'cost_over_limit',
        p_detail => jsonb_build_object(
          'task', p_task, 'limit', v_name, 'requests', v_requests, 'tokens', v_tokens,
          'requests_per_minute', v_limit.requests_per_minute, 'requests_per_hour', v_limit.requests_per_hour,
          'tokens_per_minute', v_limit.tokens_per_minute, 'tokens_per_hour', v_limit.tokens_per_hour
        )
      );
    end if;
    v_gate := trunkline_internal.gate_of(p_name => v_name);
    if not exists (select from trunkline_internal.gate_names as n where n.gate = v_gate and n.limit_id = v_limit.limit_id) then
      insert into trunkline_internal.gate_names (gate, limit_id, name, seen_at)
      values (v_gate, v_limit.limit_id, v_name, trunkline.clock());
    end if;
    v_gates := v_gates || array[v_limit.limit_id::bigint, v_gate];
  end loop;
  return array[v_requests, v_tokens, v_units] || v_gates;
end;
$$;
comment on function trunkline_internal.resolve_need(text, text[], jsonb, jsonb, text) is 'Says what a job takes of its task''s limits: {requests, tokens, units, limit, gate, limit, gate ...}. Refuses what could never run.';
