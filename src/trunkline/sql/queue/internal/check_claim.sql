-- Refuses invalid arguments of a claim and returns the tenant that the session acts for.
-- Returns a value so that claim can call it in an assignment: PERFORM runs a statement, which costs 6 µs. For the same
-- reason it calls require_read_committed only if the isolation level is another one.
create or replace function trunkline_internal.check_claim(
  p_worker text,
  p_queues text[],
  p_limit integer,
  p_tasks text[],
  p_limited integer
)
returns text
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_worker is null or p_worker = '' or length(p_worker) > 200 then
    perform trunkline_internal.refuse(p_name => 'worker_required', p_detail => '{}');
  end if;
  if p_limit is null or p_limit not between 1 and 10000 then
    perform trunkline_internal.refuse(
      p_name => 'limit_out_of_range',
      p_detail => jsonb_build_object('limit', p_limit, 'minimum', 1, 'maximum', 10000)
    );
  end if;
  if p_limited not between 0 and 10000 then
    perform trunkline_internal.refuse(
      p_name => 'limit_out_of_range',
      p_detail => jsonb_build_object('limited', p_limited, 'minimum', 0, 'maximum', 10000)
    );
  end if;
  if not trunkline_internal.is_name_list(p_names => p_queues) or not trunkline_internal.is_name_list(p_names => p_tasks) then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_queues or p_tasks', 'must_be', 'one list of at most 10000 names and 1 MB')
    );
  end if;
  if current_setting('transaction_isolation') <> 'read committed' then
    perform trunkline_internal.require_read_committed();
  end if;
  return trunkline.tenant_scope();
end;
$$;
comment on function trunkline_internal.check_claim(text, text[], integer, text[], integer) is 'Refuses invalid arguments of a claim and returns the tenant that the session acts for.';
