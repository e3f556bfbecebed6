-- Locks buckets until the transaction ends, exclusively or shared; returns whether it got them all.
-- Waits for 40 ms in all. Without waiting a worker would be idle; waiting without end would stop all workers behind one
-- long transaction. Only a call that has to wait pays for the exception handler, which is a subtransaction.
create or replace function trunkline_internal.wait_for_buckets(p_charges trunkline_internal.bucket_charge[], p_shared boolean)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set lock_timeout = '40ms'
as $$
declare
  v_begin timestamptz := trunkline.clock();
  v_charge trunkline_internal.bucket_charge;
begin
  foreach v_charge in array p_charges loop
    if p_shared and trunkline_internal.try_share_bucket(p_bucket => v_charge.bucket) then
      continue;
    elsif not p_shared and trunkline_internal.try_lock_bucket(p_bucket => v_charge.bucket) then
      continue;
    -- For all buckets together, not for each.
    elsif trunkline.clock() - v_begin > interval '40 milliseconds' then
      return false;
    end if;
    begin
      if p_shared then
        perform trunkline_internal.share_bucket(p_bucket => v_charge.bucket);
      else
        perform trunkline_internal.lock_bucket(p_bucket => v_charge.bucket);
      end if;
    exception
      when lock_not_available then
        return false;
    end;
  end loop;
  return true;
end;
$$;
comment on function trunkline_internal.wait_for_buckets(trunkline_internal.bucket_charge[], boolean) is 'Locks buckets until the transaction ends, exclusively or shared; returns whether it got them all.';
