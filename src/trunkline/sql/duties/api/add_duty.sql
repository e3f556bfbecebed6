-- Adds a duty that calls a function of yours from time to time, or changes one that was added before.
-- Workers run it with the rights of trunkline_owner, so only its members may call this, and nobody else may be able to
-- replace the function. A changed duty keeps its record and stays disabled if it was. Locks the duty's row.
create or replace function trunkline.add_duty(p_duty text, p_function text, p_every interval, p_description text default null)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before jsonb;
  v_function text;
  v_rule text;
begin
  perform trunkline_internal.require_all_tenants(p_detail => jsonb_build_object('duty', p_duty));
  if p_duty is null or p_duty !~ '^[a-z][a-z0-9_]{0,62}$' then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object(
        'argument', 'p_duty', 'value', p_duty,
        'must_be', 'at most 63 lower-case letters, digits and underscores, the first one a letter'
      )
    );
  end if;
  perform trunkline_internal.refuse_builtin_duty(p_duty => p_duty);
  if p_every is null or p_every <= interval '0' then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_every', 'value', p_every, 'must_be', 'more than zero')
    );
  end if;
  if octet_length(p_description) > 1000 then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_description', 'must_be', 'at most 1000 bytes')
    );
  end if;
  v_rule := trunkline_internal.broken_duty_rule(p_function => p_function);
  if v_rule is not null then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_function', 'value', p_function, 'must_be', v_rule)
    );
  end if;
  select format('%I.%I', n.name[1], n.name[2]) into strict v_function from parse_ident(p_function) as n (name);
  v_before := trunkline_internal.operated_state(p_kind => 'duty', p_object => p_duty);
  insert into trunkline_internal.duties as d (duty, function, every, description)
  values (p_duty, v_function, p_every, coalesce(p_description, format('Calls %s.', v_function)))
  on conflict (duty) do update
  set function = excluded.function, every = excluded.every, description = excluded.description;
  perform trunkline_internal.log_change(
    p_action => 'add_duty', p_kind => 'duty', p_object => p_duty, p_before => v_before
  );
end;
$$;
comment on function trunkline.add_duty(text, text, interval, text) is 'Adds a duty that calls a function of yours from time to time, or changes one that was added before.';
