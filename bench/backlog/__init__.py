"""How long operators wait while millions of jobs are queued."""
