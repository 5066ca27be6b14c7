"""BERT: transformers' pre-LN encoder, for masked tokens."""

from manybody.models import description


class About(description.Transformer):
    network = "Bert"
    display_name = "BERT"
    coarse_chains = True

    @property
    def coarse_copy_bytes(self) -> int:
        length, width, mlp = (self.description[key] for key in ("length", "width", "mlp"))
        # Of each row in single precision: residual, its sum with an output, and a norm.
        single = 3 * width
        # In half precision: the norm again, q k v, attention's output twice, hidden units twice.
        half = 6 * width + 2 * mlp
        return length * (4 * single + 2 * half)
