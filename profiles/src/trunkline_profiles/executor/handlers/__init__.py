"""The work of the profile's tasks, as plain functions that are independent of jobs and workers."""
