-- Drops reclaim_stale_jobs; no wake-up calls it any more.

drop function if exists executor.reclaim_stale_jobs();
