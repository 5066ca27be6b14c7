"""What makes `Sequences`: text so far; each source is one module."""


class SourceError(ValueError):
    """A corpus cannot be read as the config says: names the file or key, and the way out."""
