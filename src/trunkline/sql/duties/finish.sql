-- Makes the first partitions with the schema itself, so that no row of today ever goes to a default partition.
do $$ begin perform trunkline.maintain_partitions(); end $$;
