-- How many worker processes are wanted for each queue and set of tasks, and from what that follows; tasks is null for all tasks.
create or replace view trunkline.wanted_workers with (security_barrier = true) as
select t.queue, t.tasks, t.wanted, t.workers, t.startable, t.running, t.low_since, t.counted_up_to
from trunkline.worker_targets() as t;
comment on view trunkline.wanted_workers is 'How many worker processes are wanted for each queue and set of tasks, and from what that follows; tasks is null for all tasks.';
