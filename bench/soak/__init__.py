"""Minutes of constant arrival under what usually makes a queue on PostgreSQL slow."""
