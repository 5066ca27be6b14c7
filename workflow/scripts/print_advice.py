"""Prints the advice on the terminal, not to a log, and what is known of the clones made so far."""

from pathlib import Path

from manybody.measure import cards, chains

params = snakemake.params
print(Path(snakemake.input.advice).read_text(encoding="utf-8"), end="")
print(f"\nThe figures with what is suggested:\n\n    {params.command}")
clones, losses = (
    [path for path in paths if Path(path).is_file()] for paths in (params.clones, params.losses)
)
said = cards.generators(snakemake.config, losses, snakemake.input.ngrams)
for clone in map(chains.known, clones):
    numbers = f"R-hat {clone['rhat']:.2f}, {clone['kept']:.0%} of the start"
    said.append(f"{clone['name']}, {clone['sweeps']} sweeps: {clone['verdict']} ({numbers}).")
if said:
    print("\n## What came out\n\n" + "".join(f"- {sentence}\n" for sentence in said), end="")
