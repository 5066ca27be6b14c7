"""BERT: transformers' pre-LN encoder, for masked tokens."""

from manybody.models import description


class About(description.About):
    network = "Bert"
    display_name = "BERT"
    bfloat16_chains = True
