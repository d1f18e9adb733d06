"""What Prometheus reads: figures of each process in plain numbers, and of the shop from the database."""
