from manybody.models.block import Transformer


class Options(Transformer):
    """gpt: GPT-Neo, for next-token prediction."""
