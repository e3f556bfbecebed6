"""What operators wait for while millions of jobs do."""
