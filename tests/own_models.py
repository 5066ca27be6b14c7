"""Models and tokenizers of transformers' own classes, tiny and with random weights, in folders."""

import json
from pathlib import Path

import torch
import transformers
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

TEXT = [
    f"the {a} {b}s the {c}, and a {c} of {d} {b}s again; {a} or {d}?"
    for a in ("spin", "chain", "field", "model", "token")
    for b in ("couple", "turn", "order", "learn")
    for c in ("lattice", "sequence", "energy", "temperature")
    for d in ("two", "three", "many", "hidden")
]
SIZES = {"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}


def word_piece(size: int = 120) -> transformers.PreTrainedTokenizerFast:
    """As BERT's: [CLS] text [SEP], with a mask token."""
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer, made.decoder = normalizers.BertNormalizer(), decoders.WordPiece()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, special_tokens=special, show_progress=False
    )
    made.train_from_iterator(TEXT, trainer)
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    made.enable_truncation(7)  # as published tokenizers have it
    roles = ("pad", "unk", "cls", "sep", "mask")
    named = {f"{role}_token": token for role, token in zip(roles, special, strict=True)}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, **named)


def byte_level(size: int = 300) -> transformers.PreTrainedTokenizerFast:
    """As GPT-NeoX's: bytes, and a token that ends a document."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    made.train_from_iterator(TEXT, trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|endoftext|>")


def letters(folder: Path, known=(*"LAGVSERTIDPKQNFYMHWCXBUZO.-", "<null_1>")) -> None:
    """As ESM-2's: a vocab.txt of letters, and no tokenizer.json."""
    folder.mkdir(exist_ok=True)
    given = ["<cls>", "<pad>", "<eos>", "<unk>", *known, "<mask>"]
    (folder / "vocab.txt").write_text("\n".join(given) + "\n")


def model(kind: str = "bert", vocabulary: int = 120, seed: int = 0, **sizes):
    """A masked `bert` or a causal `gpt_neox` (or another type) that predicts something: weights are
    far from 0."""
    auto = transformers.AutoModelForCausalLM
    if kind in ("bert", "roberta", "esm", "modernbert"):
        auto = transformers.AutoModelForMaskedLM
    given = {"hidden_size": 16, "max_position_embeddings": 32, "pad_token_id": 0, **SIZES, **sizes}
    config = transformers.AutoConfig.for_model(kind, vocab_size=vocabulary, **given)
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(seed)
        made = auto.from_config(config).eval()
        for part in made.parameters():
            part.add_(0.1 * torch.randn_like(part))
    return made


def edit(folder: Path, name: str = "config.json", **changes) -> None:
    """Changes keys of a JSON file; None takes one away."""
    said = json.loads((folder / name).read_text()) | changes
    said = {key: value for key, value in said.items() if value is not None}
    (folder / name).write_text(json.dumps(said))
