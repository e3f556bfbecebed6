-- Records that a bucket was charged too much or too little in a second; counts from the commit on and waits for no lock.
-- Wakes workers whose jobs wait for what was freed. Nothing is given back for a second in the future, which exists after
-- the clock was set back: the window would drop the charge before the refund and be open twice.
-- An amount added for such a second counts from now, or the window would stay shut until that second is over.
create or replace function trunkline_internal.adjust_bucket(
  p_bucket bigint,
  p_at bigint,
  p_requests bigint,
  p_tokens bigint,
  p_units bigint
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_slack constant integer := 2;
  v_ahead boolean;
  v_least bigint;
  v_second bigint := floor(extract(epoch from trunkline.clock()))::bigint;
begin
  if p_requests = 0 and p_tokens = 0 and p_units = 0 then
    return;
  end if;
  v_ahead := p_at > v_second + c_slack;
  v_least := case when v_ahead then 0 else least(p_requests, p_tokens, p_units) end;
  insert into trunkline_internal.bucket_adjustments (bucket, at, requests, tokens, units)
  values (
    p_bucket, case when v_ahead then v_second else p_at end,
    greatest(p_requests, v_least), greatest(p_tokens, v_least), greatest(p_units, v_least)
  );
  if v_least < 0 then
    perform trunkline_internal.wake_bucket(p_bucket => p_bucket);
  end if;
end;
$$;
comment on function trunkline_internal.adjust_bucket(bigint, bigint, bigint, bigint, bigint) is 'Records that a bucket was charged too much or too little in a second; counts from the commit on and waits for no lock.';
