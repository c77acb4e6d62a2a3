"""HTTP in, HTTP out. Falcon lives here and nowhere else."""
