"""GPT: transformers' GPT-Neo, for next-token prediction."""

from manybody.models import description


class About(description.About):
    network = "Gpt"
    display_name = "GPT-Neo"
    causal = True
