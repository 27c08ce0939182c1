"""Collections, trainings, sweeps and evaluations on a Ray cluster; docs/cluster.md. Needs the extra `cluster`."""
