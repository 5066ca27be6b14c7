"""The page of a run, with its verdicts, figures, chains and provenance; the card of a clone."""
