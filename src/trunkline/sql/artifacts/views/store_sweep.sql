-- The sweep of the store: how many files without an artifact it has found so far, when it last ended and when the next begins.
create or replace view trunkline.store_sweep with (security_barrier = true) as
select s.orphans, s.ended_at, s.next_at
from trunkline_internal.store_sweep as s
where (select trunkline.tenant_scope() is null);
comment on view trunkline.store_sweep is 'The sweep of the store: how many files without an artifact it has found so far, when it last ended and when the next begins.';
