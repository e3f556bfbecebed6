select studio.reclaim_stale_tasks()
