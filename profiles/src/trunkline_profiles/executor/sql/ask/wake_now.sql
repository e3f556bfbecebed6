select w.reclaimed from executor.process_orchestrator_jobs() as w
union all
select w.reclaimed from executor.wake_execution_engine() as w
