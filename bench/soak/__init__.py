"""Minutes of constant arrival under conditions that usually slow a queue on PostgreSQL."""
