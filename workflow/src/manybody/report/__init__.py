"""The page of a run, with its verdicts, figures, chains and provenance; pages of families."""
