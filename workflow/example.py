"""Makes what `manybody example` copies: a family, a text, and a small model trained on such texts.

    PYTHONPATH=workflow/src python workflow/example.py

Contacts of the family are those of a Potts model. In the text the object of a sentence follows from
its subject and its verb together, and from neither alone: an interaction of three words.
"""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers

import manybody as mb
from manybody.measure.known_contacts import of_brackets

OUT = Path(__file__).parent / "src" / "manybody" / "example"
STRUCTURE = "((((((..(((....)))..(((.....)))..))))))."
LETTERS, PAIRED = "ACGU", {"AU": -1.0, "CG": -1.0, "GU": -0.5}
SUBJECTS = ("spin", "chain", "field", "token", "site", "layer")
VERBS = ("turns", "reads", "holds", "finds", "meets", "moves")
OBJECTS = ("lattice", "sequence", "energy", "vector", "order", "sample")
ADVERBS = ("often", "again", "slowly", "never")
LENGTH, STEPS = 16, (100, 500, 4000)


def family() -> None:
    """1,000 sequences of RNA, and its structure as dots and brackets."""
    J, U = of_brackets("STRUCTURE", STRUCTURE, len(STRUCTURE)).astype(float), np.zeros((4, 4))
    for pair, energy in PAIRED.items():
        a, b = map(LETTERS.index, pair)
        U[a, b] = U[b, a] = energy
    rows = mb.sample_potts(J, U, beta=1.5, sequences=1000, seed=1)
    lines = (
        f">member-{number}\n{''.join(LETTERS[token] for token in row)}\n"
        for number, row in enumerate(rows, 1)
    )
    (OUT / "family.fasta").write_text("".join(lines))
    (OUT / "family.db").write_text(f"{STRUCTURE}\n")


def text(sentences: int, seed: int) -> str:
    """Sentences, five a line."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(sentences):
        subject, verb, adverb = rng.integers(0, (len(SUBJECTS), len(VERBS), len(ADVERBS)))
        words = SUBJECTS[subject], VERBS[verb], "the", OBJECTS[(subject + verb) % len(OBJECTS)]
        found.append(" ".join(("the", *words, ADVERBS[adverb], ".")))
    return "".join(f"{' '.join(found[at : at + 5])}\n" for at in range(0, sentences, 5))


def model() -> None:
    """A GPT at three steps of its training on other texts of the grammar."""
    words = ("[UNK]", "the", ".", *SUBJECTS, *VERBS, *OBJECTS, *ADVERBS)
    made = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, "[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.save(str(OUT / "model" / "tokenizer.json"))
    (OUT / "text.txt").write_text(text(1000, seed=2))
    with TemporaryDirectory() as work:
        whole = Path(work, "text.txt")
        whole.write_text(text(40_000, seed=3))
        tokens = mb.read_text(whole, OUT / "model", LENGTH, sequences=20_000)
        mb.train_model(
            work, tokens[500:], tokens[:500], len(words), "gpt", layers=2, heads=2, width=24,
            mlp=48, steps=STEPS[-1], batch=256, learning_rate=0.01,
            recipe={"checkpoints": {"logarithmic": 0, "listed": list(STEPS[:-1])}},
        )  # fmt: skip
        for step in STEPS:
            kept = mb.load_model(Path(work, "manifest.json"), step)
            mb.save_pretrained(kept, OUT / "model" / f"checkpoint-{step}")
            print(step, mb.losses(kept, tokens[:500]).mean())


if __name__ == "__main__":
    shutil.rmtree(OUT, ignore_errors=True)
    (OUT / "model").mkdir(parents=True)
    family()
    model()
