-- For the demonstration: a dead worker's jobs are back within seconds.

select clinical.set_configuration(p_key => k.config_key, p_value => k.config_value)
from (
  values
    -- In this order: a timeout is three heartbeats or more.
    (1, 'worker.heartbeat_interval_seconds', '1'),
    (2, 'worker.timeout_seconds', '3'),
    (3, 'worker.reclaim_jitter_max_seconds', '1')
) as k (place, config_key, config_value)
order by k.place
