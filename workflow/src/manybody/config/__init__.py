"""The typed model of a config, and what its figures ask for."""
