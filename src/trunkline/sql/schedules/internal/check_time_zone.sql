-- Refuses anything but the full name of a time zone: area and place, such as Europe/Paris, or UTC or GMT.
-- The meaning of an abbreviation (CET, EST) depends on the session's settings, and PostgreSQL reads any word with a number
-- as an offset with the sign reversed. So a schedule accepts neither. The view pg_timezone_names is not used, because it
-- reads all time zone files, which takes 100 ms.
create or replace function trunkline_internal.check_time_zone(p_time_zone text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_time_zone ~ '^(UTC|GMT|[A-Z][A-Za-z]+(/[A-Za-z_-]+){1,2}|Etc/GMT([-+]?0|-[1-9]|-1[0-4]|[+][1-9]|[+]1[0-2]))$'
    and p_time_zone !~* '^(posix|right)/'
  then
    begin
      perform timezone(p_time_zone, timestamp '2000-01-01');
      return;
    exception
      when invalid_parameter_value then
        null;
    end;
  end if;
  perform trunkline_internal.refuse(
    p_name => 'unknown_time_zone',
    p_detail => jsonb_build_object('time_zone', left(p_time_zone, 200))
  );
end;
$$;
comment on function trunkline_internal.check_time_zone(text) is 'Refuses anything but the full name of a time zone: area and place, such as Europe/Paris, or UTC or GMT.';
