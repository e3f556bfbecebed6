-- Cron expressions in all their forms, in zones whose clocks change, and with what is wrong with those that are refused.
\ir ../helpers/tools.sql
select plan(32);

set session authorization trunkline_producer;
create function pg_temp.due(p_cron text, p_after text default '2026-01-01 00:00:00+00', p_time_zone text default 'UTC', p_count integer default 4) returns text language sql as $$
  select string_agg(to_char(d at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS'), ', ') from trunkline.next_due(p_cron, p_time_zone, p_after::timestamptz, p_count) as d
$$;
-- The same in the time of the zone.
create function pg_temp.local(p_cron text, p_after text, p_time_zone text, p_count integer default 4) returns text language sql as $$
  select string_agg(to_char(d at time zone p_time_zone, 'MM-DD HH24:MI') || to_char(d at time zone 'UTC', ' (HH24:MI)'), ', ') from trunkline.next_due(p_cron, p_time_zone, p_after::timestamptz, p_count) as d
$$;
create function pg_temp.refused(p_cron text, p_time_zone text default 'UTC') returns jsonb language sql as $$
  select t.refusal(format('select trunkline.next_due(%L, %L, %L)', p_cron, p_time_zone, '2026-01-01 00:00:00+00')) - 'message' - 'sqlstate' - 'cron'
$$;
select is(
  array[pg_temp.due('* * * * *'), pg_temp.due('* * * * *', '2026-01-01 00:00:59.999+00'), pg_temp.due('* * * * *', '2025-12-31 23:59:30+00')],
  '{"2026-01-01 00:01:00, 2026-01-01 00:02:00, 2026-01-01 00:03:00, 2026-01-01 00:04:00","2026-01-01 00:01:00, 2026-01-01 00:02:00, 2026-01-01 00:03:00, 2026-01-01 00:04:00","2026-01-01 00:00:00, 2026-01-01 00:01:00, 2026-01-01 00:02:00, 2026-01-01 00:03:00"}',
  'every minute'
);
select is(
  array[pg_temp.due('0 * * * *'), pg_temp.due('59 * * * *'), pg_temp.due('0 * * * *', '2026-01-01 00:00:01+00')],
  '{"2026-01-01 01:00:00, 2026-01-01 02:00:00, 2026-01-01 03:00:00, 2026-01-01 04:00:00","2026-01-01 00:59:00, 2026-01-01 01:59:00, 2026-01-01 02:59:00, 2026-01-01 03:59:00","2026-01-01 01:00:00, 2026-01-01 02:00:00, 2026-01-01 03:00:00, 2026-01-01 04:00:00"}',
  'at a minute'
);
select is(
  array[pg_temp.due('*/20 * * * *'), pg_temp.due('5/20 * * * *'), pg_temp.due('10-30/10 * * * *'), pg_temp.due('*/59 * * * *'), pg_temp.due('0 */7 * * *')],
  '{"2026-01-01 00:20:00, 2026-01-01 00:40:00, 2026-01-01 01:00:00, 2026-01-01 01:20:00","2026-01-01 00:05:00, 2026-01-01 00:25:00, 2026-01-01 00:45:00, 2026-01-01 01:05:00","2026-01-01 00:10:00, 2026-01-01 00:20:00, 2026-01-01 00:30:00, 2026-01-01 01:10:00","2026-01-01 00:59:00, 2026-01-01 01:00:00, 2026-01-01 01:59:00, 2026-01-01 02:00:00","2026-01-01 07:00:00, 2026-01-01 14:00:00, 2026-01-01 21:00:00, 2026-01-02 00:00:00"}',
  'steps'
);
select is(
  array[pg_temp.due('1,3-4,59 * * * *'), pg_temp.due('0 22-23 * * *'), pg_temp.due('0 0 1,15 * *'), pg_temp.due('30 6 * * 1-5')],
  '{"2026-01-01 00:01:00, 2026-01-01 00:03:00, 2026-01-01 00:04:00, 2026-01-01 00:59:00","2026-01-01 22:00:00, 2026-01-01 23:00:00, 2026-01-02 22:00:00, 2026-01-02 23:00:00","2026-01-15 00:00:00, 2026-02-01 00:00:00, 2026-02-15 00:00:00, 2026-03-01 00:00:00","2026-01-01 06:30:00, 2026-01-02 06:30:00, 2026-01-05 06:30:00, 2026-01-06 06:30:00"}',
  'lists and ranges'
);
select is(
  array[pg_temp.due('0 0 1 FEB *'), pg_temp.due('0 0 * jan-mar MON'), pg_temp.due('0 0 * * SUN,Sat'), pg_temp.due('0 0 1 DEC *')],
  '{"2026-02-01 00:00:00, 2027-02-01 00:00:00, 2028-02-01 00:00:00, 2029-02-01 00:00:00","2026-01-05 00:00:00, 2026-01-12 00:00:00, 2026-01-19 00:00:00, 2026-01-26 00:00:00","2026-01-03 00:00:00, 2026-01-04 00:00:00, 2026-01-10 00:00:00, 2026-01-11 00:00:00","2026-12-01 00:00:00, 2027-12-01 00:00:00, 2028-12-01 00:00:00, 2029-12-01 00:00:00"}',
  'names'
);
select is(
  array[pg_temp.due('0 0 * * 0'), pg_temp.due('0 0 * * 7'), pg_temp.due('0 0 * * 5-7'), pg_temp.due('0 0 * * 6')],
  '{"2026-01-04 00:00:00, 2026-01-11 00:00:00, 2026-01-18 00:00:00, 2026-01-25 00:00:00","2026-01-04 00:00:00, 2026-01-11 00:00:00, 2026-01-18 00:00:00, 2026-01-25 00:00:00","2026-01-02 00:00:00, 2026-01-03 00:00:00, 2026-01-04 00:00:00, 2026-01-09 00:00:00","2026-01-03 00:00:00, 2026-01-10 00:00:00, 2026-01-17 00:00:00, 2026-01-24 00:00:00"}',
  'weekdays by number'
);
select is(
  array[pg_temp.due('0 0 13 * 5'), pg_temp.due('0 0 */2 * 5'), pg_temp.due('0 0 13 * *'), pg_temp.due('0 0 * * 5')],
  '{"2026-01-02 00:00:00, 2026-01-09 00:00:00, 2026-01-13 00:00:00, 2026-01-16 00:00:00","2026-01-09 00:00:00, 2026-01-23 00:00:00, 2026-02-13 00:00:00, 2026-02-27 00:00:00","2026-01-13 00:00:00, 2026-02-13 00:00:00, 2026-03-13 00:00:00, 2026-04-13 00:00:00","2026-01-02 00:00:00, 2026-01-09 00:00:00, 2026-01-16 00:00:00, 2026-01-23 00:00:00"}',
  'days and weekdays'
);
select is(
  array[pg_temp.due('0 0 L * *'), pg_temp.due('0 0 LW * *'), pg_temp.due('0 0 * * 5L'), pg_temp.due('0 0 L 2 *', '2026-01-01 00:00:00+00', 'UTC', 4)],
  '{"2026-01-31 00:00:00, 2026-02-28 00:00:00, 2026-03-31 00:00:00, 2026-04-30 00:00:00","2026-01-30 00:00:00, 2026-02-27 00:00:00, 2026-03-31 00:00:00, 2026-04-30 00:00:00","2026-01-30 00:00:00, 2026-02-27 00:00:00, 2026-03-27 00:00:00, 2026-04-24 00:00:00","2026-02-28 00:00:00, 2027-02-28 00:00:00, 2028-02-29 00:00:00, 2029-02-28 00:00:00"}',
  'last days'
);
select is(
  array[pg_temp.due('0 0 * * 1#1'), pg_temp.due('0 0 * * FRI#3'), pg_temp.due('0 0 * * 0#5'), pg_temp.due('0 0 * * 7#2')],
  '{"2026-01-05 00:00:00, 2026-02-02 00:00:00, 2026-03-02 00:00:00, 2026-04-06 00:00:00","2026-01-16 00:00:00, 2026-02-20 00:00:00, 2026-03-20 00:00:00, 2026-04-17 00:00:00","2026-03-29 00:00:00, 2026-05-31 00:00:00, 2026-08-30 00:00:00, 2026-11-29 00:00:00","2026-01-11 00:00:00, 2026-02-08 00:00:00, 2026-03-08 00:00:00, 2026-04-12 00:00:00"}',
  'weekdays of a month'
);
select is(
  array[pg_temp.due('0 0 29 2 *'), pg_temp.due('0 0 31 * *'), pg_temp.due('0 0 30 2,4 *')],
  '{"2028-02-29 00:00:00, 2032-02-29 00:00:00, 2036-02-29 00:00:00, 2040-02-29 00:00:00","2026-01-31 00:00:00, 2026-03-31 00:00:00, 2026-05-31 00:00:00, 2026-07-31 00:00:00","2026-04-30 00:00:00, 2027-04-30 00:00:00, 2028-04-30 00:00:00, 2029-04-30 00:00:00"}',
  'leap days and short months'
);
select is(
  array[pg_temp.due('@yearly'), pg_temp.due('@annually'), pg_temp.due('@monthly'), pg_temp.due('@weekly'), pg_temp.due('@daily'), pg_temp.due('@midnight'), pg_temp.due('@hourly')],
  '{"2027-01-01 00:00:00, 2028-01-01 00:00:00, 2029-01-01 00:00:00, 2030-01-01 00:00:00","2027-01-01 00:00:00, 2028-01-01 00:00:00, 2029-01-01 00:00:00, 2030-01-01 00:00:00","2026-02-01 00:00:00, 2026-03-01 00:00:00, 2026-04-01 00:00:00, 2026-05-01 00:00:00","2026-01-04 00:00:00, 2026-01-11 00:00:00, 2026-01-18 00:00:00, 2026-01-25 00:00:00","2026-01-02 00:00:00, 2026-01-03 00:00:00, 2026-01-04 00:00:00, 2026-01-05 00:00:00","2026-01-02 00:00:00, 2026-01-03 00:00:00, 2026-01-04 00:00:00, 2026-01-05 00:00:00","2026-01-01 01:00:00, 2026-01-01 02:00:00, 2026-01-01 03:00:00, 2026-01-01 04:00:00"}',
  'short forms'
);
select is(
  array[pg_temp.due(E'  0\t0  1 *   * '), pg_temp.due('0 0 1 Jan *'), pg_temp.due(' @Daily ')],
  '{"2026-02-01 00:00:00, 2026-03-01 00:00:00, 2026-04-01 00:00:00, 2026-05-01 00:00:00","2027-01-01 00:00:00, 2028-01-01 00:00:00, 2029-01-01 00:00:00, 2030-01-01 00:00:00","2026-01-02 00:00:00, 2026-01-03 00:00:00, 2026-01-04 00:00:00, 2026-01-05 00:00:00"}',
  'white space and case'
);
select is(
  pg_temp.due('0 0 29 2 1', '2026-03-01 00:00:00+00'),
  '2027-02-01 00:00:00, 2027-02-08 00:00:00, 2027-02-15 00:00:00, 2027-02-22 00:00:00',
  'far ahead'
);
-- Clocks in Berlin go forward on 29 March 2026 at 02:00 and back on 25 October at 03:00.
select is(
  pg_temp.local('30 2 * * *', '2026-03-27 12:00:00+00', 'Europe/Berlin'),
  '03-28 02:30 (01:30), 03-29 03:00 (01:00), 03-30 02:30 (00:30), 03-31 02:30 (00:30)',
  'a fixed time in the hour that is skipped'
);
select is(
  array[pg_temp.local('*/30 * * * *', '2026-03-29 00:15:00+00', 'Europe/Berlin', 5), pg_temp.local('15 * * * *', '2026-03-28 23:30:00+00', 'Europe/Berlin'), pg_temp.local('30 2-3 * * *', '2026-03-28 20:00:00+00', 'Europe/Berlin')],
  '{"03-29 01:30 (00:30), 03-29 03:00 (01:00), 03-29 03:30 (01:30), 03-29 04:00 (02:00), 03-29 04:30 (02:30)","03-29 01:15 (00:15), 03-29 03:15 (01:15), 03-29 04:15 (02:15), 03-29 05:15 (03:15)","03-29 03:00 (01:00), 03-29 03:30 (01:30), 03-30 02:30 (00:30), 03-30 03:30 (01:30)"}',
  'repeated ones'
);
select is(
  array[pg_temp.local('30 2 * * *', '2026-10-24 12:00:00+00', 'Europe/Berlin'), pg_temp.local('0 3 * * *', '2026-10-24 12:00:00+00', 'Europe/Berlin')],
  '{"10-25 02:30 (00:30), 10-26 02:30 (01:30), 10-27 02:30 (01:30), 10-28 02:30 (01:30)","10-25 03:00 (02:00), 10-26 03:00 (02:00), 10-27 03:00 (02:00), 10-28 03:00 (02:00)"}',
  'a fixed time in the hour that comes twice'
);
select is(
  array[pg_temp.local('*/30 * * * *', '2026-10-24 23:45:00+00', 'Europe/Berlin', 7), pg_temp.local('15 * * * *', '2026-10-25 00:00:00+00', 'Europe/Berlin'), pg_temp.local('* 2 * * *', '2026-10-25 00:58:00+00', 'Europe/Berlin', 3)],
  '{"10-25 02:00 (00:00), 10-25 02:30 (00:30), 10-25 02:00 (01:00), 10-25 02:30 (01:30), 10-25 03:00 (02:00), 10-25 03:30 (02:30), 10-25 04:00 (03:00)","10-25 02:15 (00:15), 10-25 02:15 (01:15), 10-25 03:15 (02:15), 10-25 04:15 (03:15)","10-25 02:59 (00:59), 10-25 02:00 (01:00), 10-25 02:01 (01:01)"}',
  'every half hour of it'
);
select is(
  array[pg_temp.local('30 2 * * *', '2026-10-25 00:30:00+00', 'Europe/Berlin', 2), pg_temp.local('*/15 * * * *', '2026-10-25 00:45:00+00', 'Europe/Berlin', 3)],
  '{"10-26 02:30 (01:30), 10-27 02:30 (01:30)","10-25 02:00 (01:00), 10-25 02:15 (01:15), 10-25 02:30 (01:30)"}',
  'after the first of the two'
);
select is(
  array[pg_temp.local('*/15 * * * *', '2026-04-04 14:40:00+00', 'Australia/Lord_Howe', 5), pg_temp.local('45 1 * * *', '2026-04-03 12:00:00+00', 'Australia/Lord_Howe', 3), pg_temp.local('15 2 * * *', '2026-10-02 20:00:00+00', 'Australia/Lord_Howe', 3)],
  '{"04-05 01:45 (14:45), 04-05 01:30 (15:00), 04-05 01:45 (15:15), 04-05 02:00 (15:30), 04-05 02:15 (15:45)","04-04 01:45 (14:45), 04-05 01:45 (14:45), 04-06 01:45 (15:15)","10-04 02:30 (15:30), 10-05 02:15 (15:15), 10-06 02:15 (15:15)"}',
  'half an hour, in Lord Howe'
);
select is(
  array[pg_temp.local('0 0 * * *', '2026-03-07 12:00:00+00', 'America/Havana', 3), pg_temp.local('30 0 * * *', '2026-10-31 12:00:00+00', 'America/Havana', 3)],
  '{"03-08 01:00 (05:00), 03-09 00:00 (04:00), 03-10 00:00 (04:00)","11-01 00:30 (04:30), 11-02 00:30 (05:30), 11-03 00:30 (05:30)"}',
  'at midnight, in Havana'
);
select is(
  array[pg_temp.local('0 9 * * *', '2026-01-01 00:00:00+00', 'Asia/Kathmandu', 2), pg_temp.local('0 9 * * *', '2026-01-01 00:00:00+00', 'Etc/GMT+5', 2), pg_temp.local('0 9 * * *', '2026-01-01 00:00:00+00', 'GMT', 1)],
  '{"01-01 09:00 (03:15), 01-02 09:00 (03:15)","01-01 09:00 (14:00), 01-02 09:00 (14:00)","01-01 09:00 (09:00)"}',
  'other offsets'
);
-- What is refused.
select is(
  array[pg_temp.refused('60 * * * *'), pg_temp.refused('* 24 * * *'), pg_temp.refused('* * 0 * *'), pg_temp.refused('* * 32 * *'), pg_temp.refused('* * * 0 *'), pg_temp.refused('* * * 13 *'), pg_temp.refused('* * * * 8')]::text,
  '{"{\"code\": \"invalid_cron\", \"field\": \"minute\", \"value\": \"60\", \"reason\": \"not understood\"}","{\"code\": \"invalid_cron\", \"field\": \"hour\", \"value\": \"24\", \"reason\": \"not understood\"}","{\"code\": \"invalid_cron\", \"field\": \"day\", \"value\": \"0\", \"reason\": \"not understood\"}","{\"code\": \"invalid_cron\", \"field\": \"day\", \"value\": \"32\", \"reason\": \"not understood\"}","{\"code\": \"invalid_cron\", \"field\": \"month\", \"value\": \"0\", \"reason\": \"not understood\"}","{\"code\": \"invalid_cron\", \"field\": \"month\", \"value\": \"13\", \"reason\": \"not understood\"}","{\"code\": \"invalid_cron\", \"field\": \"weekday\", \"value\": \"8\", \"reason\": \"not understood\"}"}',
  'fields'
);
select is(
  array[pg_temp.due('59 23 31 12 *', '2026-01-01 00:00:00+00', 'UTC', 1), pg_temp.due('0 0 1 1 0', '2026-01-01 00:00:00+00', 'UTC', 1)],
  '{"2026-12-31 23:59:00","2026-01-04 00:00:00"}',
  'bounds of fields'
);
select is(
  array[pg_temp.refused('5-1 * * * *'), pg_temp.refused('*/0 * * * *'), pg_temp.refused('*/60 * * * *'), pg_temp.refused('1- * * * *'), pg_temp.refused(', * * * *'), pg_temp.refused('x * * * *'), pg_temp.refused('-1 * * * *'), pg_temp.refused('1.5 * * * *'), pg_temp.refused('1/x * * * *'), pg_temp.refused('100 * * * *')]::text,
  '{"{\"code\": \"invalid_cron\", \"field\": \"minute\", \"value\": \"5-1\", \"reason\": \"not understood\"}","{\"code\": \"invalid_cron\", \"field\": \"minute\", \"value\": \"*/0\", \"reason\": \"not understood\"}",NULL,"{\"code\": \"invalid_cron\", \"field\": \"minute\", \"value\": \"1-\", \"reason\": \"not understood\"}","{\"code\": \"invalid_cron\", \"field\": \"minute\", \"value\": \"\", \"reason\": \"not understood\"}","{\"code\": \"invalid_cron\", \"field\": \"minute\", \"value\": \"X\", \"reason\": \"not understood\"}","{\"code\": \"invalid_cron\", \"field\": \"minute\", \"value\": \"-1\", \"reason\": \"not understood\"}","{\"code\": \"invalid_cron\", \"field\": \"minute\", \"value\": \"1.5\", \"reason\": \"not understood\"}","{\"code\": \"invalid_cron\", \"field\": \"minute\", \"value\": \"1/X\", \"reason\": \"not understood\"}","{\"code\": \"invalid_cron\", \"field\": \"minute\", \"value\": \"100\", \"reason\": \"not understood\"}"}',
  'terms'
);
select is(
  array[pg_temp.refused('MON * * * *'), pg_temp.refused('* * * MON *'), pg_temp.refused('* * * * JAN'), pg_temp.refused('* * MON * *'), pg_temp.refused('L * * * *'), pg_temp.refused('* * * * 5#6'), pg_temp.refused('* * * * 5#0'), pg_temp.refused('* * W * *')]::text,
  '{"{\"code\": \"invalid_cron\", \"field\": \"minute\", \"value\": \"MON\", \"reason\": \"not understood\"}","{\"code\": \"invalid_cron\", \"field\": \"month\", \"value\": \"MON\", \"reason\": \"not understood\"}","{\"code\": \"invalid_cron\", \"field\": \"weekday\", \"value\": \"JAN\", \"reason\": \"not understood\"}","{\"code\": \"invalid_cron\", \"field\": \"day\", \"value\": \"MON\", \"reason\": \"not understood\"}","{\"code\": \"invalid_cron\", \"field\": \"minute\", \"value\": \"L\", \"reason\": \"not understood\"}","{\"code\": \"invalid_cron\", \"field\": \"weekday\", \"value\": \"5#6\", \"reason\": \"not understood\"}","{\"code\": \"invalid_cron\", \"field\": \"weekday\", \"value\": \"5#0\", \"reason\": \"not understood\"}","{\"code\": \"invalid_cron\", \"field\": \"day\", \"value\": \"W\", \"reason\": \"not understood\"}"}',
  'names in the wrong place'
);
select is(
  array[pg_temp.refused('* * * *'), pg_temp.refused('* * * * * *'), pg_temp.refused(''), pg_temp.refused(null), pg_temp.refused('@never'), pg_temp.refused('@daily @daily'), pg_temp.refused(repeat(' ', 1001))]::text,
  '{"{\"code\": \"invalid_cron\", \"field\": \"expression\", \"value\": 4, \"reason\": \"wrong number of fields\"}","{\"code\": \"invalid_cron\", \"field\": \"expression\", \"value\": 6, \"reason\": \"wrong number of fields\"}","{\"code\": \"invalid_cron\", \"field\": \"expression\", \"value\": 0, \"reason\": \"wrong number of fields\"}","{\"code\": \"invalid_cron\", \"field\": \"expression\", \"value\": null, \"reason\": \"missing\"}","{\"code\": \"invalid_cron\", \"field\": \"alias\", \"value\": \"@never\", \"reason\": \"not understood\"}","{\"code\": \"invalid_cron\", \"field\": \"expression\", \"value\": 2, \"reason\": \"wrong number of fields\"}","{\"code\": \"invalid_cron\", \"field\": \"expression\", \"value\": 1001, \"reason\": \"longer than 1000 characters\"}"}',
  'expressions'
);
select is(
  array[pg_temp.due('0 0 1 1 *' || repeat(' ', 991), '2026-06-01 00:00:00+00', 'UTC', 1), (pg_temp.refused('0 0 1 1 *' || repeat(' ', 992)) ->> 'reason')],
  '{"2027-01-01 00:00:00","longer than 1000 characters"}',
  'the longest'
);
select is(
  array[pg_temp.refused('0 0 30 2 *'), pg_temp.refused('0 0 31 4 *'), pg_temp.refused('0 0 31 2,4,6,9,11 *'), pg_temp.refused('0 0 30,31 2 */2'), pg_temp.refused('0 0 31 6 1')]::text,
  '{"{\"code\": \"invalid_cron\", \"field\": \"day\", \"value\": \"30\", \"reason\": \"never due\"}","{\"code\": \"invalid_cron\", \"field\": \"day\", \"value\": \"31\", \"reason\": \"never due\"}","{\"code\": \"invalid_cron\", \"field\": \"day\", \"value\": \"31\", \"reason\": \"never due\"}","{\"code\": \"invalid_cron\", \"field\": \"day\", \"value\": \"30,31\", \"reason\": \"never due\"}",NULL}',
  'never due'
);
select is(
  array[pg_temp.refused('@daily', 'Europe/Nowhere'), pg_temp.refused('@daily', 'CET'), pg_temp.refused('@daily', 'posix/Europe/Berlin'), pg_temp.refused('@daily', 'UTC+3'), pg_temp.refused('@daily', 'Etc/GMT+13'), pg_temp.refused('@daily', 'Etc/GMT-15'), pg_temp.refused('@daily', repeat('x', 300)), pg_temp.refused('@daily', 'europe/berlin')]::text,
  '{"{\"code\": \"unknown_time_zone\", \"time_zone\": \"Europe/Nowhere\"}","{\"code\": \"unknown_time_zone\", \"time_zone\": \"CET\"}","{\"code\": \"unknown_time_zone\", \"time_zone\": \"posix/Europe/Berlin\"}","{\"code\": \"unknown_time_zone\", \"time_zone\": \"UTC+3\"}","{\"code\": \"unknown_time_zone\", \"time_zone\": \"Etc/GMT+13\"}","{\"code\": \"unknown_time_zone\", \"time_zone\": \"Etc/GMT-15\"}","{\"code\": \"unknown_time_zone\", \"time_zone\": \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}","{\"code\": \"unknown_time_zone\", \"time_zone\": \"europe/berlin\"}"}',
  'zones'
);
select is(
  array[pg_temp.due('@daily', '2026-01-01 12:00:00+00', 'Etc/GMT+12', 1), pg_temp.due('@daily', '2026-01-01 12:00:00+00', 'Etc/GMT-14', 1), pg_temp.due('@daily', '2026-01-01 12:00:00+00', 'America/Argentina/Buenos_Aires', 1)],
  '{"2026-01-02 12:00:00","2026-01-02 10:00:00","2026-01-02 03:00:00"}',
  'those that are taken'
);
select is(
  array[
  t.refusal($$select trunkline.next_due('@daily', p_count => 0)$$) - 'message' - 'sqlstate', t.refusal($$select trunkline.next_due('@daily', p_count => 1001)$$) - 'message' - 'sqlstate',
  t.refusal($$select trunkline.next_due('@daily', p_after => '1969-12-31 23:59:59+00')$$) - 'message' - 'sqlstate', t.refusal($$select trunkline.next_due('@daily', p_after => '9000-01-01 00:00:01+00')$$) - 'message' - 'sqlstate'
]::text,
  '{"{\"code\": \"limit_out_of_range\", \"limit\": 0, \"maximum\": 1000, \"minimum\": 1}","{\"code\": \"limit_out_of_range\", \"limit\": 1001, \"maximum\": 1000, \"minimum\": 1}","{\"code\": \"invalid_argument\", \"value\": \"1969-12-31T23:59:59+00:00\", \"must_be\": \"a time between 1970 and 9000\", \"argument\": \"p_after\"}","{\"code\": \"invalid_argument\", \"value\": \"9000-01-01T00:00:01+00:00\", \"must_be\": \"a time between 1970 and 9000\", \"argument\": \"p_after\"}"}',
  'numbers and times'
);
select is(
  array[(select count(*) from trunkline.next_due('* * * * *', p_count => 1000)), (select count(*) from trunkline.next_due('* * * * *')), (select count(*) from trunkline.next_due('@yearly', p_after => '1970-01-01 00:00:00+00', p_count => 1))],
  '{1000,5,1}',
  'as many as are asked for'
);

select * from finish();
