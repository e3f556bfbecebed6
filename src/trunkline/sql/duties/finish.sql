-- Makes the first partitions with the schema itself, so that no row of today ever goes to a default partition.
do $$ begin perform trunkline.maintain_partitions(); end $$;

-- The installing role may be a member of trunkline_owner; `verify` reports every other login that is one.
insert into trunkline_internal.installers (role) values (session_user) on conflict do nothing;
