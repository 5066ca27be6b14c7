"""Checks of the config beyond its types: that names exist and that choices fit together."""

import re
from collections.abc import Iterator
from math import isclose

from manybody.config.figures import figure_problems
from manybody.config.names import fits, kept, known, of_kind
from manybody.config.schema import schema_problems, shown

NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.-]+")
SPLITS = ("train", "validation", "test")
IN_BFLOAT16 = ("bert",)  # architectures whose chains move in it, as in sampling.backend
PUBLISHED = {"tinystories": ("train", "validation"), "wikitext103": SPLITS}
NAMED = ("corpora", "sources", "models", "clones", "evaluations", "theory", "curves")


class ConfigError(ValueError):
    """What is wrong with the config: the key's path, the value, what was expected, the way out."""


def check(config: dict) -> None:
    """Raises `ConfigError` with everything that is wrong with `config`, one line each."""
    # Each needs what the one before has checked: names, types, then how they fit together.
    for problems in (_name_problems, schema_problems, _problems):
        lines = dict.fromkeys(problems(config))
        if lines:
            listed = "".join(f"\n  {line}" for line in lines)
            raise ConfigError(f"the config cannot be used:{listed}")


def take_away(config: dict) -> None:
    """Removes what is null under `figures`: a paper, a figure, or a key of a figure, in place.

    Snakemake lays mappings over one another, so an overlay could otherwise only add to the default.
    """
    _without_nulls(config.get("figures"))


def _without_nulls(node) -> None:
    if isinstance(node, dict):
        for key in [key for key, value in node.items() if value is None]:
            del node[key]
        for value in node.values():
            _without_nulls(value)


def _name_problems(config: dict) -> Iterator[str]:
    """Names that cannot be part of a path, and keys that are no text."""
    yield from _key_problems("", config)
    for block in NAMED:
        entries = config.get(block)
        for name in entries if isinstance(entries, dict) else ():
            if isinstance(name, str) and not NAME.fullmatch(name):
                yield (
                    f"{block}: found the name {shown(name)}; expected letters, digits, '_', '.' "
                    f"and '-', since folders are called so; rename it"
                )


def _key_problems(path: str, node) -> Iterator[str]:
    parts = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in parts:
        if isinstance(node, dict) and not isinstance(key, str):
            yield (
                f"{path or 'config'}: found the key {shown(key)}, a {type(key).__name__}; expected "
                f"text; put it in quotes, or rename it"
            )
        elif isinstance(value, dict | list):
            step = f".{key}" if path else str(key)
            yield from _key_problems(path + (f"[{key}]" if isinstance(key, int) else step), value)


def _problems(config: dict) -> Iterator[str]:
    yield from _compute_problems(config["compute"])
    for name, corpus in config["corpora"].items():
        yield from _corpus_problems(f"corpora.{name}", corpus)
    for name, source in config["sources"].items():
        yield from _source_problems(f"sources.{name}", source, config)
    for name, model in config["models"].items():
        yield from _model_problems(f"models.{name}", model)
    for name, clone in config["clones"].items():
        yield from _clone_problems(f"clones.{name}", clone, config)
    for name, evaluation in config["evaluations"].items():
        yield from _evaluation_problems(f"evaluations.{name}", evaluation, config)
    for name, curve in config["curves"].items():
        yield from _curve_problems(f"curves.{name}", curve, config)
    for name, theory in config["theory"].items():
        yield from _theory_problems(f"theory.{name}", theory)
    for paper, figures in config["figures"].items():
        for name, block in figures.items():
            yield from figure_problems(paper, name, block, config)


def _compute_problems(compute: dict) -> Iterator[str]:
    if compute["device"] == "cpu" and compute["gpus"]:
        yield (
            f"compute.gpus: found {compute['gpus']} with device cpu, which leaves them idle; "
            f"expected 0; set it, or take device auto"
        )


def _corpus_problems(path: str, corpus: dict) -> Iterator[str]:
    yield from _share_problems(f"{path}.split", corpus["split"])
    if corpus["split"] == "published" and corpus.get("deduplicate"):
        yield (
            f"{path}.deduplicate: found true with a published split, which keeps its documents; "
            f"expected false; leave it out, or give shares as split"
        )
    if corpus["kind"] == "file":
        if "marker" in corpus and corpus["boundary"] != "marker":
            yield (
                f"{path}.marker: found {shown(corpus['marker'])} with boundary "
                f"{corpus['boundary']}, which does not look for it; expected boundary marker; "
                f"change it, or leave marker out"
            )
    elif "files" in corpus:
        wanted = PUBLISHED[corpus["kind"]] if corpus["split"] == "published" else ()
        parts = corpus["files"]
        if not parts or not set(wanted) <= set(parts) <= set(SPLITS):
            yield (
                f"{path}.files: found the parts {', '.join(parts) or 'none'}; expected "
                f"{', '.join(wanted or SPLITS)}, as they are published; name the files of each"
            )


def _share_problems(path: str, split: dict | str) -> Iterator[str]:
    if isinstance(split, dict):
        total = sum(split[key] for key in SPLITS)
        if not isclose(total, 1, abs_tol=1e-9):
            yield (
                f"{path}: found shares that sum to {total:g}; expected 1; change train, validation "
                f"or test"
            )


def _source_problems(path: str, source: dict, config: dict) -> Iterator[str]:
    if source["kind"] == "text":
        yield from known(f"{path}.corpus", "corpora", source["corpus"], config)
        if source["end_of_document"] == "kept" and source["vocabulary"] < 257:
            yield (
                f"{path}.vocabulary: found {source['vocabulary']} with end_of_document kept; "
                f"expected at least 257, the bytes and the marker; raise it"
            )
    elif source["kind"] == "alignment":
        yield from _share_problems(f"{path}.split", source["split"])
    elif source["kind"] == "potts":
        given = [key for key, value in source["temperature"].items() if value is not None]
        if len(given) != 1:
            yield (
                f"{path}.temperature: found {' and '.join(given) or 'neither hamming nor beta'}; "
                f"expected one of hamming and beta; give one, and null for the other where an "
                f"overlay replaces it: {{hamming: null, beta: 1.0}}"
            )
    elif source["kind"] == "many-body" and source["length"] < source["order"]:
        yield (
            f"{path}.length: found {source['length']}; expected at least {source['order']} sites, "
            f"the order of the interaction; take at least {source['order']}"
        )


def _model_problems(path: str, model: dict) -> Iterator[str]:
    yield from _factored_problems(path, model)
    if "width" in model and model["width"] % model["heads"]:
        yield (
            f"{path}.heads: found {model['heads']}, which does not divide width {model['width']}; "
            f"expected a divisor; change either"
        )
    if "training" not in model:
        return
    recipe = model["training"]
    if recipe["optimizer"]["name"] == "lbfgs":
        if "weights" in recipe and "subset" in recipe:
            yield (
                f"{path}.training.subset: found {recipe['subset']} with weights, which are counted "
                f"among all training sequences; expected one of the two; leave one out"
            )
        free = model["architecture"] == "factored" and model.get("attention", "free") == "free"
        if "sparsity" in recipe["optimizer"] and not (free and model["layers"] == 1):
            yield (
                f"{path}.training.optimizer.sparsity: found {recipe['optimizer']['sparsity']}; "
                f"expected it for one layer of factored attention with free maps only; leave it out"
            )
    else:
        yield from _recipe_problems(path, model["architecture"], recipe)


def _factored_problems(path: str, model: dict) -> Iterator[str]:
    """What factored attention has beside its recipe."""
    if model.get("bias") == "site" and model["layers"] > 1:
        yield (
            f"{path}.bias: found site with {model['layers']} layers; expected one layer; set bias "
            f"to true or false"
        )
    if model.get("heads", 1) > 1 and model.get("variant") == "paper":
        yield (
            f"{path}.heads: found {model['heads']} with variant paper, which has one head; "
            f"expected 1; leave heads out, or take variant exact"
        )
    start, rank = model.get("start"), model.get("rank")
    if start is not None and rank is not None:
        yield (
            f"{path}.start: found {start} with rank {rank}; expected rank null, since a "
            f"uniform start is that of full values; set it, or leave start out"
        )
    if isinstance(start, list) and len(start) != model["layers"]:
        yield (
            f"{path}.start: found {start} for {model['layers']} layers; expected one scale for "
            f"each; list them, or give one number for all"
        )


def _recipe_problems(path: str, architecture: str, recipe: dict) -> Iterator[str]:
    """How the steps of a training fit together."""
    expected = "next-token" if architecture == "gpt" else "masked"
    if recipe["objective"] != expected:
        yield (
            f"{path}.training.objective: found {recipe['objective']}; expected {expected}, as a "
            f"{architecture} model is trained; set it"
        )
    beyond = [step for step in recipe["checkpoints"]["listed"] if step > recipe["steps"]]
    if beyond:
        yield (
            f"{path}.training.checkpoints.listed: found {beyond}; expected steps up to the "
            f"last, {recipe['steps']}; take them out or train longer"
        )
    hold = recipe.get("hold", 0)
    if hold and recipe["schedule"] != "cosine":
        yield (
            f"{path}.training.hold: found {hold} with schedule {recipe['schedule']}, which holds "
            f"the rate anyway; expected none; leave it out or take schedule cosine"
        )
    if hold and recipe["warmup"] + hold > recipe["steps"]:
        yield (
            f"{path}.training.hold: found {hold}; expected at most "
            f"{recipe['steps'] - recipe['warmup']}, the steps after the warm-up; shorten it"
        )
    if recipe["warmup"] >= recipe["steps"]:
        yield (
            f"{path}.training.warmup: found {recipe['warmup']}; expected less than the "
            f"{recipe['steps']} steps of the run; shorten it"
        )


def _clone_problems(path: str, clone: dict, config: dict) -> Iterator[str]:
    missing = [
        *known(f"{path}.source", "sources", clone["source"], config),
        *known(f"{path}.model", "models", clone["model"], config),
    ]
    if isinstance(clone["step"], dict):
        reference = clone["step"]["loss_of"]["model"]
        missing += known(f"{path}.step.loss_of.model", "models", reference, config)
    if missing:
        yield from missing
        return
    model = config["models"][clone["model"]]
    if model["architecture"] == "gpt" or "training" not in model:
        kind = "a causal model" if "training" in model else "which is not trained"
        yield (
            f"{path}.model: found {clone['model']}, {kind}; expected a trained model with masked "
            f"logits, as chains need them; take a factored or bert model"
        )
        return
    if isinstance(clone["step"], dict):
        reference = config["models"][clone["step"]["loss_of"]["model"]]
        if "training" not in reference:
            yield (
                f"{path}.step.loss_of.model: found {clone['step']['loss_of']['model']}, which is "
                f"not trained; expected a model with a training; name one"
            )
    given = config["sources"][clone["source"]]
    available = given.get("sequences", given.get("blocks", {})).get("test")
    if clone["start"] == "test" and available and clone["chains"] > available:
        yield (
            f"{path}.chains: found {clone['chains']} that start at test sequences; expected at "
            f"most the {available} of source {clone['source']}; lower it, or make more of them"
        )
    if clone["precision"] == "bfloat16" and model["architecture"] not in IN_BFLOAT16:
        yield (
            f"{path}.precision: found bfloat16 for {clone['model']}, of the architecture "
            f"{model['architecture']}; expected float32, in which the loops of all but "
            f"{' and '.join(IN_BFLOAT16)} are written; set it"
        )
    if "checkpoints" not in model["training"]:
        if clone["step"] != "last":
            yield (
                f"{path}.step: found {clone['step']}, but {clone['model']} is fitted and keeps its "
                f"end only; expected last; set it"
            )
    elif isinstance(clone["step"], int) and not kept(clone["step"], model["training"]):
        yield (
            f"{path}.step: found {clone['step']}; expected one of the checkpoints of "
            f"{clone['model']}, up to {model['training']['steps']}, or last; take one, or list it "
            f"under models.{clone['model']}.training.checkpoints"
        )
    yield from fits(path, clone["model"], clone["source"], config)


def _evaluation_problems(path: str, evaluation: dict, config: dict) -> Iterator[str]:
    missing = [
        *known(f"{path}.source", "sources", evaluation["source"], config),
        *known(f"{path}.model", "models", evaluation["model"], config),
    ]
    if missing:
        yield from missing
        return
    model = config["models"][evaluation["model"]]
    if "training" not in model:
        yield (
            f"{path}.model: found {evaluation['model']}, which is not trained; expected a model "
            f"with a training; take another"
        )
    if model["architecture"] == "gpt" and evaluation["positions"] != "all":
        yield (
            f"{path}.positions: found {evaluation['positions']} for {evaluation['model']}, which "
            f"predicts the next token; expected all; set it"
        )
    for name, target in evaluation["targets"].items():
        yield from _target_problems(f"{path}.targets.{name}", target, evaluation, config)
    yield from fits(path, evaluation["model"], evaluation["source"], config)


def _target_problems(path: str, target: dict, evaluation: dict, config: dict) -> Iterator[str]:
    if "split" in target:
        source = config["sources"][evaluation["source"]]
        most = source.get("sequences", source.get("blocks", {})).get(target["split"])
        if most and target["sequences"] > most:
            yield (
                f"{path}.sequences: found {target['sequences']}; expected at most {most}, the "
                f"{target['split']} split of source {evaluation['source']}; lower it"
            )
        return
    key = "clone" if "clone" in target else "starts"
    missing = list(known(f"{path}.{key}", "clones", target[key], config))
    if missing:
        yield from missing
        return
    clone = config["clones"][target[key]]
    if clone["source"] != evaluation["source"]:
        yield (
            f"{path}.{key}: found {target[key]}, sequences of source {clone['source']}; expected "
            f"source {evaluation['source']}, which the model is trained on; take a clone of it"
        )
    if key == "clone" and target["sweep"] not in clone["sweeps"]:
        yield (
            f"{path}.sweep: found {target['sweep']}; expected one of the sweeps that "
            f"clones.{target[key]} saves, {clone['sweeps']}; take one of them or add it there"
        )


def _curve_problems(path: str, curve: dict, config: dict) -> Iterator[str]:
    missing = list(of_kind(f"{path}.source", curve["source"], ("potts",), config))
    if missing:
        yield from missing
        return
    available = config["sources"][curve["source"]]["sequences"]
    needed = curve["realisations"] * max(curve["sizes"])
    if needed > available["train"]:
        yield (
            f"{path}.sizes: found {max(curve['sizes'])} with {curve['realisations']} realisations "
            f"of their own; expected at most the {available['train']} training sequences of source "
            f"{curve['source']} in all; lower either, or sample more"
        )
    if curve["test"] > available["validation"]:
        yield (
            f"{path}.test: found {curve['test']}; expected at most the {available['validation']} "
            f"validation sequences of source {curve['source']}; lower it"
        )


def _theory_problems(path: str, theory: dict) -> Iterator[str]:
    kind, points = theory["kind"], theory.get("points", 0)
    if points & (points - 1):
        yield (
            f"{path}.points: found {points}; expected a power of 2; take "
            f"{2 ** (points.bit_length() - 1)} or {2 ** points.bit_length()}"
        )
    if kind == "replica" and theory["sizes"] != sorted(theory["sizes"]):
        yield f"{path}.sizes: found {theory['sizes']}; expected rising lengths; sort them"
    if kind == "multi-index-gamp":
        if theory.get("activation") == "linear" and theory["skip"] == 0:
            yield (
                f"{path}.skip: found 0 with activation linear; expected c > 0, as linear attention "
                f"has no inverse without it; raise it or take softmax"
            )
        informed = theory["start"] == "informed"
        if informed != (theory["overlaps"] is not None):
            expected = "two overlaps" if informed else "null"
            yield (
                f"{path}.overlaps: found {theory['overlaps']} with start {theory['start']}; "
                f"expected {expected}; set them, or change start"
            )
        for alpha in theory["alphas"]:
            if round(alpha * theory["dimension"]) < 1:
                yield (
                    f"{path}.alphas: found {alpha}, no sample at dimension {theory['dimension']}; "
                    f"expected at least {1 / theory['dimension']:g}; raise either"
                )
    if kind == "multi-index-trec" and not theory["tokenizer"] and "vocabulary" not in theory:
        yield (
            f"{path}.vocabulary: missing with tokenizer null; expected the tokens of the tokenizer "
            f"that is trained; add vocabulary, or name a tokenizer"
        )
