-- Returns the first of a job's limits that can never allow the job's cost; nulls if it fits all of them.
-- unit is the part of the cost that is too large. limit_id is the one that the job carries.
create or replace function trunkline_internal.exceeded_limit(
  p_cost trunkline_internal.job_cost,
  out bucket bigint,
  out limit_id integer,
  out unit text,
  out cost bigint,
  out most bigint
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_most trunkline_internal.amounts;
begin
  for v_place in 1..coalesce(cardinality(p_cost.bucket_ids), 0) loop
    select (trunkline_internal.most_at_once(p_limit => l)).*
    into v_most
    from trunkline_internal.limits as l
    where l.limit_id = trunkline_internal.limit_of(p_bucket => p_cost.bucket_ids[v_place], p_limit => p_cost.limit_ids[v_place]);
    unit := case
      when p_cost.requests > v_most.requests then 'requests'
      when p_cost.tokens > v_most.tokens then 'tokens'
      when p_cost.units > v_most.units then 'units'
    end;
    if unit is not null then
      bucket := p_cost.bucket_ids[v_place];
      limit_id := p_cost.limit_ids[v_place];
      cost := trunkline_internal.amount_of(
        p_unit => unit, p_requests => p_cost.requests, p_tokens => p_cost.tokens, p_units => p_cost.units
      );
      most := trunkline_internal.amount_of(
        p_unit => unit, p_requests => v_most.requests, p_tokens => v_most.tokens, p_units => v_most.units
      );
      return;
    end if;
  end loop;
end;
$$;
comment on function trunkline_internal.exceeded_limit(trunkline_internal.job_cost) is 'Returns the first of a job''s limits that can never allow the job''s cost; nulls if it fits all of them.';
