"""What a run says of each claim of the papers."""
