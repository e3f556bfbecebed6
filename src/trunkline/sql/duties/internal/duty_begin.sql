-- Starts a duty unless another session is running it: locks its row, records the start and returns whether to go on.
-- The row is the lock because only the owner has rights on it. Any login may take an advisory lock and keep it.
-- The lock lasts until the transaction ends. It costs nothing extra, because recording the start updates the same row.
create or replace function trunkline_internal.duty_begin(p_duty text)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform from trunkline_internal.duties as d where d.duty = p_duty for update skip locked;
  if found then
    update trunkline_internal.duties as d
    set started_at = trunkline.clock(), runs = d.runs + 1
    where d.duty = p_duty;
    return true;
  end if;
  if not exists (select from trunkline_internal.duties as d where d.duty = p_duty) then
    perform trunkline_internal.refuse(
      p_name => 'unknown_duty',
      p_detail => jsonb_build_object(
        'duty', p_duty, 'known', (select jsonb_agg(d.duty order by d.duty) from trunkline_internal.duties as d)
      )
    );
  end if;
  return false;
end;
$$;
comment on function trunkline_internal.duty_begin(text) is 'Starts a duty unless another session is running it: locks its row, records the start and returns whether to go on.';
