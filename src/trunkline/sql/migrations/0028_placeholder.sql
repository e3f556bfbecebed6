-- why: keeps the numbers of this branch without a gap until 0028 is merged
-- breaking: no

select 1;
