"""The course's own model, kept apart so that its one file can be read, downloaded and run alone."""
