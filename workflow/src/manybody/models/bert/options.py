from manybody.models.block import Transformer


class Options(Transformer):
    """bert: the pre-LN encoder."""
