-- Runs a duty unless another session is running it: locks its row, calls its function, and records how that ended.
-- `ran` is false if another session holds the row, if the duty needs a session that acts for all tenants, or, with p_due_only,
-- if the duty is disabled or not due any more. An error in the function undoes its work, is recorded, and does not reach the
-- caller. The row is the lock because only the owner has rights on it; any login could take an advisory lock and keep it.
-- The lock lasts until the transaction ends. It costs nothing extra, because recording the start updates the same row.
create or replace function trunkline_internal.guard_duty(
  p_duty text,
  p_due_only boolean default false,
  p_limit integer default null,
  p_keep_rows boolean default false,
  out ran boolean,
  out done integer,
  out error text,
  out result jsonb
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_assertion constant text := 'P0004';
  c_cancel constant text := '57014';
  v_duty trunkline_internal.duties;
  v_narrowed boolean := trunkline.tenant_scope() is not null;
  v_now timestamptz := trunkline.clock();
  v_rule text;
begin
  perform trunkline_internal.require_read_committed();
  select d.*
  into v_duty
  from trunkline_internal.duties as d
  where d.duty = p_duty
    and not (v_narrowed and d.needs_all_tenants)
    -- Checked again under the lock: since the caller listed the duties, another session may have run this one.
    and (not p_due_only or (d.enabled and trunkline_internal.is_due(p_started_at => d.started_at, p_every => d.every, p_now => v_now)))
  for update skip locked;
  ran := found;
  if not ran then
    perform trunkline_internal.require_duty(p_duty => p_duty);
    return;
  end if;
  update trunkline_internal.duties as d
  set started_at = v_now, runs = d.runs + 1
  where d.duty = p_duty;
  begin
    if not v_duty.builtin then
      -- The owner of the function may have lost his rights since add_duty checked it.
      v_rule := trunkline_internal.broken_duty_rule(p_function => v_duty.function);
      if v_rule is not null then
        raise exception using
          errcode = 'insufficient_privilege',
          message = format('%s cannot run as a duty: it must be %s', v_duty.function, v_rule);
      end if;
    end if;
    select c.done, c.result
    into done, result
    from trunkline_internal.call_duty(p_function => v_duty.function, p_limit => p_limit, p_keep_rows => p_keep_rows) as c;
    update trunkline_internal.duties as d
    set
      ended_at = trunkline.clock(), succeeded_at = trunkline.clock(), rows = done, failures_in_a_row = 0, last_error = null
    where d.duty = p_duty;
  exception
    when others or assert_failure or query_canceled then
      -- A cancelled duty of a user counts as failed. Otherwise a duty that always exceeds statement_timeout would undo the
      -- duties before it in every call.
      if v_duty.builtin and sqlstate in (c_assertion, c_cancel) then
        raise;
      end if;
      done := 0;
      error := sqlerrm;
      result := null;
      update trunkline_internal.duties as d
      set
        ended_at = trunkline.clock(), rows = 0, failures = d.failures + 1, failures_in_a_row = d.failures_in_a_row + 1,
        last_error = jsonb_build_object('sqlstate', sqlstate, 'message', sqlerrm)
      where d.duty = p_duty;
      raise warning 'duty % failed: % (%)', p_duty, sqlerrm, sqlstate;
  end;
end;
$$;
comment on function trunkline_internal.guard_duty(text, boolean, integer, boolean) is 'Runs a duty unless another session is running it: locks its row, calls its function, and records how that ended.';
