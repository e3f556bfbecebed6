"""What recorded steps cost, and workflows of ten steps side by side with DBOS."""
