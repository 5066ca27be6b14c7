"""What a config may say, and what its figures ask for."""
