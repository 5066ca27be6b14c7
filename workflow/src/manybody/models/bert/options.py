from manybody.models.transformer import Transformer


class Options(Transformer):
    """bert: the pre-LN encoder."""
