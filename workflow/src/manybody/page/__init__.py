"""The page of a run: verdicts, figures with their captions, chains, provenance."""
