"""The benchmarks: the real server under load, each figure beside what pgbench does on the same database."""
