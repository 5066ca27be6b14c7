"""Paths, constraints and the small helpers that rules share. Standard library only."""

import hashlib
import re
from functools import cache
from pathlib import Path

from manybody.config.sources import sized
from manybody.config.spectra import enumerable
from manybody.io.atomic import sha256, to_json
from manybody.models import ARCHITECTURES
from manybody.io.code_digest import code_digest
from manybody.sampling import footprint
from manybody.data import SourceError, given
from manybody.data.kinds import KINDS

RESULTS = config["results"]
SEQUENCES = f"{RESULTS}/sequences/{{source}}"
MODEL = f"{RESULTS}/models/{{source}}/{{model}}/seed-{{seed}}/manifest.json"
CLONE = f"{RESULTS}/clones/{{source}}/{{clone}}/manifest.json"
CARDS = f"{RESULTS}/cards/{{cards}}.json"
LOSSES = f"{RESULTS}/losses/{{evaluation}}/seed-{{seed}}.parquet"
TRUTH = f"{RESULTS}/truths/{{evaluation}}.parquet"
HAMILTONIAN = f"{SEQUENCES}/hamiltonian.safetensors"
THEORY = f"{RESULTS}/theory/{{theory}}.parquet"
CURVE = f"{RESULTS}/curves/{{curve}}.parquet"
SPECTRUM = f"{RESULTS}/spectra/{{spectrum}}/seed-{{seed}}.parquet"
DISPLACEMENTS = f"{RESULTS}/displacements/{{source}}/{{model}}.parquet"
EQUATIONS = f"{RESULTS}/equations/{{paper}}/{{figure}}.parquet"
MAPS = f"{RESULTS}/maps/{{source}}/{{model}}/seed-{{seed}}.parquet"
CONTACTS = f"{RESULTS}/contacts/{{source}}/{{model}}/seed-{{seed}}.parquet"
KNOWN = f"{RESULTS}/known_contacts/{{paper}}/{{figure}}.parquet"
SPLITS = ("train", "validation", "test")
SCRIPTS = Path(workflow.basedir) / "workflow" / "scripts"
CLAIMS = Path(workflow.basedir) / "workflow/src/manybody/claims"
DATA = Path(workflow.basedir) / "workflow/src/manybody/data"


wildcard_constraints:
    corpus="[A-Za-z0-9_.-]+",
    source="[A-Za-z0-9_.-]+",
    model="[A-Za-z0-9_.-]+",
    clone="[A-Za-z0-9_.-]+",
    evaluation="[A-Za-z0-9_.-]+",
    spectrum="[A-Za-z0-9_.-]+",
    figure="[A-Za-z0-9_]+",
    paper="[a-z-]+",
    seed="[0-9]+",
    split="|".join(SPLITS),
    theory="[A-Za-z0-9_.-]+",
    curve="[A-Za-z0-9_.-]+",


def entry(block, name):
    """The config's entry `block: name`; a refusal that names what is there."""
    if name not in config[block]:
        known = ", ".join(sorted(config[block]))
        refuse(f"config has no {block}: {name}; it has {known}")
    return config[block][name]


def named(names):
    """A constraint that only these names meet."""
    return "|".join(map(re.escape, names)) or "(?!)"


def sources_made_by(rule):
    return [name for name, source in checked.sources.items() if source.made_by == rule]


def sources_with(file):
    """The sources of which rules make this file beside the sequences."""
    return [name for name, source in checked.sources.items() if file in source.beside]


def file_beside(source, file):
    """A file beside the sequences of a source; nothing for a source that has none of this name."""
    return f"{SEQUENCES.format(source=source)}/{file}" if source in sources_with(file) else []


def code(script, *modules, figure=False):
    """Digest of the code behind a script's numbers; `modules` are imported by name at run time.

    What is drawn or judged of a figure names models by what their packages say of them.
    """
    said = ARCHITECTURES.values() if figure else ()
    return code_digest(SCRIPTS / script, (*modules, *said), plotting=figure)


def digests(files):
    """sha256 of the user's own files as they are before a job starts, up to a megabyte each.

    Of those snakemake takes down what they hold when a job has ended, not when it reads them: a
    change in between would pass for what was read. Larger files it goes by their times. To be
    called without `input`: of a parameter that depends on it snakemake keeps no record.
    """
    small = [path for path in map(Path, files) if path.is_file() and path.stat().st_size <= 10**6]
    return {str(path): sha256(path) for path in small}


def growing(amount):
    """A resource of which a job that is submitted again, since it ran out, gets more.

    `amount` is a number, or a function of the wildcards.
    """

    def granted(wildcards, attempt):
        return attempt * (amount(wildcards) if callable(amount) else amount)

    return granted


def model_modules(model):
    """The modules of a model that a job imports by name."""
    package = ARCHITECTURES[entry("models", model)["architecture"]]
    return [package, f"{package}.network"]


def theory_module(theory):
    """The module that computes a theory, or checks the identities of a kind `...-exact`."""
    kind = entry("theory", theory)["kind"].replace("-", "_")
    if kind.endswith("_exact"):
        return f"manybody.claims.identities.{kind.removesuffix('_exact')}"
    return f"manybody.theory.{kind.replace('multi_index_', 'multi_index.')}"


def own_file(block, name, key, value, expected):
    """A file of the user's that a key of the entry `block: name` names, refused before any job."""
    try:
        return str(given.named_file(value, key, expected))
    except SourceError as error:
        refuse(error.within(f"{block}.{name}"))


def theory_files(theory):
    """The user's own files that a theory reads."""
    expected = {
        "questions": "a file of lines `COARSE:fine question`, or null",
        "tokenizer": "a vocab.txt or tokenizer.json, or null",
    }
    found = {key: entry("theory", theory).get(key) for key in expected}
    return [
        own_file("theory", theory, key, value, expected[key])
        for key, value in found.items()
        if isinstance(value, str)
    ]


def is_trained(model):
    """Whether a model is trained here, not given the parameters of its source or weights."""
    return not {"parameters", "weights"} & entry("models", model).keys()


def is_fitted(model):
    """Whether a model is fitted to all sequences at once, which is done on the CPU."""
    return entry("models", model)["training"]["optimizer"]["name"] == "lbfgs"


def training_modules(model):
    """The modules that a training imports by name."""
    return [*model_modules(model), *(["manybody.training.lbfgs"] if is_fitted(model) else [])]


def corpus_files(corpus):
    """The user's own files that a corpus is read from; those in a folder one by one."""
    files = entry("corpora", corpus).get("files", [])
    parts = files if isinstance(files, dict) else {"": files}
    try:
        return [
            str(path)
            for part, names in parts.items()
            for path in given.text_files(names, f"files.{part}" if part else "files")
        ]
    except SourceError as error:
        refuse(error.within(f"corpora.{corpus}"))


def corpus_modules(corpus):
    kind = entry("corpora", corpus)["kind"]
    modules = {"pydocs": ["manybody.data.pydocs"], "file": []}
    return modules.get(kind, ["manybody.data.published"])


def source_files(source):
    """The user's own files that a source is made of."""
    return [
        own_file("sources", source, key, path, expected)
        for key, path, expected in checked.sources[source].given_files()
    ]


def source_module(source):
    """The module that makes the sequences of a source."""
    return KINDS[checked.sources[source].kind]


def trained_tokenizers():
    """The sources whose tokenizer is trained on their corpus."""
    return [
        name for name in sources_with("tokenizer.json") if not file_beside(name, "special.json")
    ]


def weight_folders(model):
    """The user's own folders that a model is read from, refused where they are not there."""
    named = entry("models", model)["weights"]
    folders = {str: [named], list: named}.get(type(named), [])
    for folder in folders:
        if not Path(folder).expanduser().is_dir():
            refuse(
                f"models.{model}.weights: found {folder}, which is no folder; expected one in "
                f"save_pretrained layout, or of checkpoint-N (relative paths start at {Path.cwd()}), "
                f"or {{hub: owner/name}}; correct the path"
            )
    return folders


def most_tokens(source):
    """What the tokens of a text cannot exceed, where it is of files of the user's own: a token is a
    byte or more, and one may stand between two files. None of others."""
    corpus = entry("corpora", entry("sources", source)["corpus"])
    files = corpus_files(entry("sources", source)["corpus"]) if corpus["kind"] == "file" else []
    if not files or any(Path(file).suffix == ".parquet" for file in files):
        return None
    return sum(Path(file).stat().st_size for file in files) + len(files)


@cache
def refuse_small_text(source):
    """Refuses what a text is too short for whatever it says."""
    most, text = most_tokens(source), entry("sources", source)
    if most is None:
        return
    held = f"as the files of corpora.{text['corpus']} hold {most} bytes"
    if 3 * text["length"] > most:
        refuse(
            f"sources.{source}.length: found {text['length']}; expected at most {most // 3}, {held} "
            f"and each of three splits needs a sequence; lower it, or give more text"
        )
    if text.get("vocabulary", 0) > 256 + most:
        refuse(
            f"sources.{source}.vocabulary: found {text['vocabulary']}; expected less than "
            f"{257 + most}, {held}; lower it, or give more text"
        )


def documents(source, split):
    refuse_small_text(source)
    return f"{RESULTS}/corpora/{entry('sources', source)['corpus']}/{split}.parquet"


def words_of(spectrum):
    """What decodes the passage of a spectrum; nothing where it has none, or is of no text."""
    found = entry("spectra", spectrum)
    return [] if found.get("passage") is None else file_beside(found["source"], "tokenizer.json")


def model_path(source, model, seed):
    entry("models", model)
    return MODEL.format(source=source, model=model, seed=seed)


def curve_sequences(curve, split):
    return f"{SEQUENCES.format(source=entry('curves', curve)['source'])}/{split}.parquet"


def map_sequences(source):
    """Validation sequences that attention maps are averaged over: 500, or all where fewer."""
    return min(500, entry("sources", source).get("sequences", {}).get("validation", 500))


def run_path(template, run):
    """A file of one run, (source, model, seed)."""
    return template.format(**dict(zip(("source", "model", "seed"), run)))


def followed_runs(source, model):
    """Manifests of a model's runs of all seeds that figures draw."""
    if [source, model] not in figure_parts("displacements"):
        known = ", ".join("{}/{}".format(*run) for run in figure_parts("displacements"))
        refuse(f"no figure follows {source}/{model}; figures follow: {known}")
    runs = figure_parts("models")
    return [model_path(*run) for run in runs if run[:2] == [source, model]]


def clone_path(clone):
    return CLONE.format(source=entry("clones", clone)["source"], clone=clone)


def architecture(model):
    """What rebuilds a model but for |V| and L, which its source gives."""
    return {
        key: value
        for key, value in entry("models", model).items()
        if key not in ("training", "init_seed")
    }


def training_stream(model):
    """The name that tells a model's batches and masks from those of others with its seeds."""
    return entry("models", model)["training"].get("stream", model)


def sequence_weights(source, model):
    """Weights of the training sequences, for a recipe that asks for them."""
    if "sequence_weights" not in entry("models", model)["training"]:
        return []
    return f"{SEQUENCES.format(source=source)}/weights.parquet"


def training_device(model):
    """Where a model trains: a recipe may keep a small network on the CPU."""
    if is_fitted(model):
        return "cpu"
    return entry("models", model)["training"].get("device", config["compute"]["device"])


def trained_models(on_cpu):
    """Trained models that stay on the CPU by their recipe, or those that need not."""
    return [
        model
        for model in config["models"]
        if is_trained(model) and on_cpu == (training_device(model) == "cpu")
    ]


def training_processes(model):
    """Data-parallel processes; one for a fit, and for what stays on the CPU beside GPUs."""
    alone = is_fitted(model) or training_device(model) != config["compute"]["device"]
    return 1 if alone else config["compute"]["processes"]


def training_threads(model):
    return entry("models", model)["training"]["threads"] * training_processes(model)


def sizes_of(source):
    """|V| and L of a source where the config says them."""
    given = sized(source, checked)
    sizes = {key: getattr(given, key, None) for key in ("vocabulary", "length")}
    return {key: size for key, size in sizes.items() if size}


def drawn_from(source):
    """What the sequences of a source are made of that are drawn exactly."""
    options = checked.sources[source]
    folder = SEQUENCES.format(source=options.made_from)
    return [*source_files(source), *(f"{folder}/{name}" for name in options.reads)]


def sampling_threads(source):
    """Several where each has enough chains to outweigh what the others then wait for."""
    return 4 if sum(entry("sources", source)["sequences"].values()) > 2000 else 1


def clone_model(clone):
    """Manifest of the model that a clone is sampled from."""
    clone = entry("clones", clone)
    return model_path(clone["source"], clone["model"], clone["seed"])


def clone_megabytes(clone):
    """Memory of a clone's job: with a GPU the chains are not in it."""
    if config["compute"]["gpus"] and config["compute"]["device"] != "cpu":
        return footprint.FIXED
    clone = entry("clones", clone)
    return footprint.job_megabytes(
        entry("models", clone["model"]), sizes_of(clone["source"]), clone
    )


def clone_reference(clone):
    """Manifest of the model whose final loss picks the checkpoint, if one does."""
    clone = entry("clones", clone)
    if not isinstance(clone["step"], dict):
        return []
    reference = clone["step"]["loss_of"]
    return model_path(clone["source"], reference["model"], reference["seed"])


def evaluated_model(evaluation, seed):
    """Manifest of the run that an evaluation tests."""
    evaluation = entry("evaluations", evaluation)
    return model_path(evaluation["source"], evaluation["model"], seed)


def evaluated_targets(evaluation):
    """One file per target, in the order of the config: a clone's manifest or a split."""
    evaluation = entry("evaluations", evaluation)
    return [target_file(evaluation["source"], target) for target in evaluation["targets"].values()]


def true_conditionals(evaluation):
    """The file and the module that say the conditionals of an evaluation's source."""
    source = entry("evaluations", evaluation)["source"]
    file, module = checked.sources[source].conditionals
    return f"{SEQUENCES.format(source=source)}/{file}", module


def evaluations_with_truth():
    """The evaluations of sources whose conditionals are known."""
    return [
        name
        for name, evaluation in checked.evaluations.items()
        if checked.sources[evaluation.source].conditionals
    ]


def target_file(source, target):
    if "split" in target:
        return f"{SEQUENCES.format(source=target.get('source', source))}/{target['split']}.parquet"
    return clone_path(target.get("clone", target.get("initial")))


def spectrum_run(spectrum, seed):
    """The run (source, model, seed) that a spectrum is measured of."""
    return entry("spectra", spectrum)["source"], entry("spectra", spectrum)["model"], seed


def spectrum_law(spectrum):
    """The Hamiltonian whose true conditionals are measured beside the model's, if there is one."""
    kind, source = (entry("spectra", spectrum)[key] for key in ("kind", "source"))
    known = kind != "draws" and enumerable(checked.sources[source])
    return [HAMILTONIAN.format(source=source)] if known else []


def spectrum_text(spectrum):
    """The training split whose n-grams are counted, where they do not follow from a Hamiltonian."""
    kind, source = (entry("spectra", spectrum)[key] for key in ("kind", "source"))
    counted = kind == "n-grams" and not spectrum_law(spectrum)
    return [f"{SEQUENCES}/train.parquet".format(source=source)] if counted else []


def figure_names(paper=None):
    """(paper, figure) of all figures of the config, or of one paper."""
    papers = config["figures"] if paper is None else [paper]
    return [(name, figure) for name in papers for figure in config["figures"].get(name, {})]


def judged_figures():
    """Those of which a paper says something."""
    return [name for name in figure_names() if is_judged(*name)]


def is_judged(paper, figure):
    """Whether a figure has a module of claims."""
    return (CLAIMS / f"{paper}/{figure}".replace("-", "_")).with_suffix(".py").is_file()


def figure_files(paper=None):
    return [path for name in figure_names(paper) for path in files_of(*name)]


def files_of(paper, figure):
    return [f"{RESULTS}/figures/{paper}/{figure}.{ending}" for ending in ("pdf", "png", "csv")]


def figure_parts(kind, names=None):
    """What figures, by default all of the config, need of one kind (see `needs`), each once."""
    named = [part for name in names or figure_names() for part in needs(*name, drawn=False)[kind]]
    return [part for number, part in enumerate(named) if part not in named[:number]]


def needs(paper, figure, drawn):
    """What a figure is drawn from, as its block declares it, or else what its claims are judged by."""
    blocks = getattr(checked.figures, paper.replace("-", "_"))
    found = getattr(blocks, figure).inputs(config)
    if drawn:
        exact = config["figures"][paper][figure].get("exact")
        found["theory"] = [name for name in found["theory"] if name != exact]
    return found


def shown_clones(paper, figure):
    """The states of clones that a figure shows, as its block names them."""
    return getattr(getattr(checked.figures, paper.replace("-", "_")), figure).states(config)


def own_figures():
    """Figures with a config of their own: they have targets of their own, and a page."""
    own = [("simplicity", "headline"), ("simplicity", "controls")]
    return [name for name in own if name in figure_names()]


@cache
def carded():
    """Of each file of cards its source, chains and n-grams: of all figures, or of an own one's."""
    found = {}
    carded_sources = [name for name, source in checked.sources.items() if source.carded]
    own = {".".join(name) + ".": [name] for name in own_figures()}
    for prefix, names in {"": figure_names(), **own}.items():
        runs = [config["evaluations"][run] for run, _ in figure_parts("runs", names)]
        targets = [target for run in runs for target in run["targets"].values()]
        tested = {target.get("source") for target in targets}
        for name in figure_parts("clones", names):
            source = entry("clones", name)["source"]
            found.setdefault(prefix + source, (source, [], []))[1].append(name)
        for name in tested.intersection(carded_sources):
            source = checked.sources[name].made_from
            found.setdefault(prefix + source, (source, [], []))[2].append(name)
    return {
        key: (source, chains, sorted(n_grams)) for key, (source, chains, n_grams) in found.items()
    }


def page_inputs(names, prefix=""):
    """What a page of figures shows; `prefix` is that of its files of cards."""
    cards = [key for key, (source, *_) in carded().items() if key == prefix + source]
    return {
        "figures": [path for name in names for path in files_of(*name)],
        "claims": [f"{RESULTS}/claims/{'/'.join(name)}.csv" for name in names if is_judged(*name)],
        "clones": [clone_path(clone) for clone in figure_parts("clones", names)],
        "cards": [CARDS.format(cards=key) for key in cards],
        "losses": tested_generators(names),
        "ngrams": counted_sources(names),
    }


def equation_runs(wildcards):
    """Runs (source, model, seed) of a figure, all of one source, that equations are asked about."""
    return needs(wildcards.paper, wildcards.figure, drawn=False)["equations"]


def contacts_block(wildcards):
    """The block of a figure of contacts."""
    return config["figures"][wildcards.paper][wildcards.figure]


def figure_block(paper, figure, drawn):
    """A figure's block without what is judged alone, if it is to be drawn, or is drawn alone."""
    hidden = "exact" if drawn else "palette"
    return {key: value for key, value in config["figures"][paper][figure].items() if key != hidden}


def truth_file(paper, figure):
    """The user's file of known contacts of a figure."""
    truth = config["figures"][paper][figure]["truth"]
    expected = "a list of contacts, a table of distances or a structure (PDB, mmCIF)"
    return own_file("figures", f"{paper}.{figure}", "truth", truth, expected)


def figure_inputs(paper, figure, drawn=False):
    """Named inputs of a figure: tables of losses, manifests of runs and clones, a tokenizer.

    Of the job that draws it, or else of the one that judges its claims.
    """
    needed = needs(paper, figure, drawn)
    # A figure of contacts names its source for the setting, and for what was planted there.
    sampled = needed["planted"] if needed["contacts"] else [*needed["sources"]]
    with_hamiltonian = sources_with("hamiltonian.safetensors")
    inputs = {
        "losses": [LOSSES.format(evaluation=name, seed=seed) for name, seed in needed["runs"]],
        "runs": [evaluated_model(name, seed) for name, seed in needed["runs"]],
        "clones": [clone_path(name) for name in needed["clones"]],
        "models": [model_path(*run) for run in needed["models"]],
        "spectra": [SPECTRUM.format(spectrum=name, seed=seed) for name, seed in needed["spectra"]],
        "displacements": [run_path(DISPLACEMENTS, run) for run in needed["displacements"]],
        "sequences": [
            f"{SEQUENCES}/validation.parquet".format(source=name)
            for name in sampled
            if not needed["contacts"]
        ],
        "hamiltonians": [
            HAMILTONIAN.format(source=name) for name in sampled if name in with_hamiltonian
        ],
        "truths": [TRUTH.format(evaluation=name) for name in needed["truths"]],
        "theory": [THEORY.format(theory=name) for name in needed["theory"]],
        "curves": [CURVE.format(curve=name) for name in needed["curves"]],
        "maps": [run_path(MAPS, run) for run in needed["maps"]],
        "equations": [EQUATIONS.format(paper=paper, figure=figure)] if needed["equations"] else [],
        "contacts": [run_path(CONTACTS, run) for run in needed["contacts"]],
        "known": [KNOWN.format(paper=paper, figure=figure)] if needed["known"] else [],
    }
    if "passages" in config["figures"][paper][figure]:
        source = entry("clones", needed["clones"][0])["source"]
        inputs["tokenizer"] = file_beside(source, "tokenizer.json")
    return inputs


@cache
def turns():
    """The turn of each file that figures are drawn from, that of the first such figure: 0, 1, ...

    Figures of fewer parts go first, and before all others one of each paper: the files of turns
    below the number of papers. With the models of their clones, contacts and maps.
    """

    def parts(name):
        return sum(len(found or ()) for found in needs(*name, drawn=True).values())

    ordered = sorted(figure_names(), key=parts)
    first = {paper: (paper, figure) for paper, figure in reversed(ordered)}
    found = {}
    for turn, name in enumerate(sorted(ordered, key=lambda name: name not in first.values())):
        needed, inputs = needs(*name, drawn=True), figure_inputs(*name, drawn=True)
        inputs.pop("tokenizer", None)
        files = {path for paths in inputs.values() for path in paths}
        files.update(map(clone_model, needed["clones"]))
        files.update(model_path(*run) for run in [*needed["contacts"], *needed["maps"]])
        files.update(model_path(*spectrum_run(*run)) for run in needed["spectra"])
        for path in files:
            found.setdefault(path, turn)
    return found


@cache
def generator_files():
    return {clone_model(clone) for clone in figure_parts("clones")}


# Priorities, from the highest on. A job of several threads waits until as many cores are free at
# once: with jobs of one thread ready that is never, unless it counts for more than all of these.
WIDE, DRAWN, DRAWN_FIRST, SEQUENCES_FIRST, OF_CLONES = 500, 100, 60, 50, 15


def urgency(file, least):
    """The priority of the jobs that make `file`, a path with wildcards: from `least` on.

    What the first figure of each paper waits for goes before all others. Models that clones are
    sampled from go before other models, as clones and evaluations wait for them. Among equals the
    files of one figure go before those of the next, so that figures come out along the way.
    """

    def of_job(wildcards):
        path = file.format(**dict(wildcards.items()))
        turn, figures = turns().get(path), figure_names()
        if turn is not None and turn < len({paper for paper, _ in figures}):
            return DRAWN_FIRST
        own = OF_CLONES if file == MODEL and path in generator_files() else least
        return own if turn is None else own + 1 - turn / len(figures)

    return of_job


def config_digest():
    """A digest of the config, for a job that reads all of it."""
    return hashlib.sha256(to_json(config).encode()).hexdigest()[:16]


def page_texts(names):
    """sha256 of what a page's job reads of the checkout: template, captions, default config."""
    captions = [f"workflow/report/{paper}/{figure}.rst" for paper, figure in names]
    texts = [f"workflow/report/{name}" for name in ("page.html", "workflow.rst", "scorecard.rst")]
    root = Path(workflow.basedir)
    return {name: sha256(root / name) for name in ("config/config.yaml", *texts, *captions)}


def tested_generators(names=None):
    """Losses of the clones' generators, from the figures' evaluations with the test split."""
    clones = [entry("clones", clone) for clone in figure_parts("clones", names)]
    generators = [(clone["source"], clone["model"], clone["seed"]) for clone in clones]
    found = []
    for name, seed in figure_parts("runs", names):
        evaluation = entry("evaluations", name)
        test = any(target.get("split") == "test" for target in evaluation["targets"].values())
        if test and (evaluation["source"], evaluation["model"], seed) in generators:
            found.append(LOSSES.format(evaluation=name, seed=seed))
    return found


def counted_sources(names=None):
    """Losses of n-grams of the texts that clones are made of."""
    sources = {entry("clones", clone)["source"] for clone in figure_parts("clones", names)}
    return [
        file_beside(source, "ngrams.json")
        for source in sources_with("ngrams.json")
        if source in sources
    ]


def trial_files():
    """What says which orders matter in a text: tables and manifests of the runs of the spectrum
    `trial`, and the n-grams of its text. Nothing where there is no such spectrum."""
    trial = config["spectra"].get("trial", {})
    if not trial.get("anchored") or not file_beside(trial["source"], "ngrams.json"):
        return {}
    return {
        "spectra": [SPECTRUM.format(spectrum="trial", seed=seed) for seed in trial["seeds"]],
        "manifests": [model_path(*spectrum_run("trial", seed)) for seed in trial["seeds"]],
        "ngrams": [file_beside(trial["source"], "ngrams.json")],
    }


def needed_trial():
    """These files, refused where the config asks for none."""
    if not trial_files():
        refuse(
            "spectra.trial: expected a spectrum of a text with `anchored`, as the default has one; "
            "leave it in, or take `advise`"
        )
    return [path for paths in trial_files().values() for path in paths]


def advised_sources():
    """Sources of text that the figures' models are trained on, or all where no figure has one."""
    text = trained_tokenizers()
    used = {config["evaluations"][name]["source"] for name, _ in figure_parts("runs")}
    return [source for source in text if source in used] or text


def advised(kind, block):
    """The figures' runs of evaluations (name, seed), or clones, of each of these sources."""

    def of(source):
        parts = figure_parts(kind)
        return [
            part
            for part in parts
            if entry(block, part[0] if kind == "runs" else part)["source"] == source
        ]

    return {source: of(source) for source in advised_sources()}
