-- Starts a duty unless another session is at it: takes its transaction-level lock, records the start and says whether to go on.
-- The lock is keyed by the name of the duty under our class, so that it meets no lock of others.
create or replace function trunkline_internal.duty_begin(p_duty text)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if not pg_try_advisory_xact_lock(84217, hashtext(p_duty)) then
    return false;
  end if;
  update trunkline_internal.duties as d
  set started_at = trunkline.clock(), runs = d.runs + 1
  where d.duty = p_duty;
  if not found then
    perform trunkline_internal.refuse(
      p_name => 'unknown_duty',
      p_detail => jsonb_build_object(
        'duty', p_duty, 'known', (select jsonb_agg(d.duty order by d.duty) from trunkline_internal.duties as d)
      )
    );
  end if;
  return true;
end;
$$;
comment on function trunkline_internal.duty_begin(text) is 'Starts a duty unless another session is at it: takes its transaction-level lock, records the start and says whether to go on.';
