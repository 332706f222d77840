"""`python -m tests.bench` measures how fast the explorer is, each time against a floor measured in the same run."""
