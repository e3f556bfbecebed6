-- How long artifacts of each kind are kept, where it is not the setting artifact_retention.
create or replace view trunkline.artifact_kinds with (security_barrier = true) as
select k.kind, k.retention, k.updated_at, k.updated_by
from trunkline_internal.artifact_kinds as k;
comment on view trunkline.artifact_kinds is 'How long artifacts of each kind are kept, where it is not the setting artifact_retention.';
