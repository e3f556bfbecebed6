"""What the tasks of the profile do, as plain functions that know no job and no worker."""
