"""Each repair that a message advises is done as it says, and leads to the same bytes."""

import re
import shutil

MODEL = "models/text/tiny/seed-0"
ADVICE = re.compile(r"(\S+) (?:is|was|has|lists)\b[^\n]*?[Dd]elete (\S+) and run the same")


def test_damaged_files_are_deleted_as_the_messages_say_and_made_again(copy, whole):
    shutil.rmtree(copy.results / "store")
    for name in (
        "corpora/tiny/test.parquet",
        "sequences/text/train.parquet",
        "sequences/text/tokenizer.json",
        "sequences/spins/hamiltonian.safetensors",
        f"{MODEL}/step-20.safetensors",
        "clones/text/tiny/manifest.json",
    ):
        content = bytearray((copy.results / name).read_bytes())
        content[len(content) // 2] ^= 1  # size and name stay
        (copy.results / name).write_bytes(content)
    for read in ("losses/tiny/seed-0.parquet", "curves/tiny.parquet", f"{MODEL}/manifest.json"):
        (copy.results / read).unlink()
    advised = set()
    while copy.run("--keep-going", check=False):
        told = {at if it == "it" else it for at, it in ADVICE.findall(copy.output)} - advised
        assert told, copy.output[-6000:]
        for path in told:
            (copy.folder / path).unlink()
        advised |= told
    assert advised
    assert copy.artifacts() == whole.artifacts()


def test_what_is_gone_is_made_again_though_what_was_drawn_of_it_stands(copy, whole):
    for name in ("step-20.safetensors", "../../../../sequences/text/overlap.json"):
        (copy.results / MODEL / name).unlink()
    copy.run()
    assert f"{MODEL}/step-20.safetensors is gone or damaged" in copy.output
    assert copy.artifacts() == whole.artifacts()
    copy.run()
    assert "Nothing to be done" in copy.output


def test_a_job_that_failed_once_is_not_called_up_to_date(copy, whole):
    for _ in range(2):
        assert copy.run(overlay="models: {tiny: {training: {batch: 70000}}}", check=False) == 1
        assert "training.batch: found 70000" in copy.output
    copy.run()
    assert copy.artifacts() == whole.artifacts()
