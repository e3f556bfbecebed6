-- Sessions that run a reclaim now, without this session, whose query also names the function.

select a.pid, a.usename as role, a.application_name as application, a.query_start as since, left(a.query, 80) as query
from pg_stat_activity as a
where a.query ~ '\m(reclaim_stale_jobs|reclaim|run_duties|process_orchestrator_jobs|wake_execution_engine|run_wake_ups)\M'
  and a.state = 'active'
  and a.datname = current_database()
  and a.pid <> pg_backend_pid()
order by a.query_start
