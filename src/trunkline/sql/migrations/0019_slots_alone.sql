-- why: limits of keys mostly count nothing but who runs at once; claims look at very many of them, and ask that of each
-- breaking: no

-- Pools are the limits whose names begin like that: one generated column cannot be made of another.
-- The table is written anew, which has a row for each limit.
-- squawk-ignore-file adding-field-with-default
alter table trunkline_internal.limits
  add column slots_alone boolean not null generated always as (
    concurrency is not null
    and name not like 'fair:%'
    and num_nonnulls(requests_per_minute, requests_per_hour, tokens_per_minute, tokens_per_hour, quota, breaker_failures) = 0
  ) stored;
comment on column trunkline_internal.limits.slots_alone is 'Whether it counts nothing but who runs at once: such limits are looked at and charged by a shorter way.';
