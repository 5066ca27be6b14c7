from manybody.models.transformer import Transformer


class Options(Transformer):
    """gpt: GPT-Neo, for next-token prediction."""
