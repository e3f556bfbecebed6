select j.type, j.status, count(*) from executor.executor_jobs as j group by j.type, j.status order by j.type, j.status
