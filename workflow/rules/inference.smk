"""Inference: what a trained model says of the interactions, and how that depends on the data.

Needs   runs, a source with a known Hamiltonian, or an alignment
Makes   results/maps/{source}/{model}/seed-{seed}.parquet, its attention and value matrices
        results/contacts/{source}/{model}/seed-{seed}.parquet, a score for each pair of sites, and
        .csv, the same from the highest on, with the sites' names
        results/known_contacts/{paper}/{figure}.parquet, which pairs are known to be in contact
        results/curves/{curve}.parquet, many small fits to subsets of a source
"""


rule extract_maps:
    input:
        model=MODEL,
        validation=f"{SEQUENCES}/validation.parquet",
    output:
        maps=MAPS,
    log:
        f"{RESULTS}/logs/extract_maps/{{source}}/{{model}}/seed-{{seed}}.log",
    benchmark:
        f"{RESULTS}/usage/extract_maps/{{source}}.{{model}}.seed-{{seed}}.jsonl"
    priority: jobs.urgency(MAPS, 30)
    conda:
        "../../envs/learning.yaml"
    resources:
        mem_mb=growing(3000),
        runtime=growing(60),
    params:
        # Matrices are cheap at every checkpoint; maps that depend on the input are averaged over
        # so many sequences at each.
        steps="all",
        sequences=lambda wildcards: sources.map_sequences(wildcards.source),
        code=lambda wildcards: code("extract_maps.py", *models.model_modules(wildcards.model)),
    message:
        "Extracting the maps of {wildcards.model} on {wildcards.source}, seed {wildcards.seed}"
    script:
        "../scripts/extract_maps.py"


rule score_contacts:
    input:
        model=MODEL,
        # says which colour is the gap
        train=f"{SEQUENCES}/train.parquet",
    output:
        contacts=CONTACTS,
        listed=CONTACTS.replace(".parquet", ".csv"),
    log:
        f"{RESULTS}/logs/score_contacts/{{source}}/{{model}}/seed-{{seed}}.log",
    benchmark:
        f"{RESULTS}/usage/score_contacts/{{source}}.{{model}}.seed-{{seed}}.jsonl"
    priority: jobs.urgency(CONTACTS, 30)
    conda:
        "../../envs/numerics.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(60),
    params:
        code=lambda wildcards: code("score_contacts.py", *models.model_modules(wildcards.model)),
    message:
        "Scoring the contacts of {wildcards.source} by {wildcards.model}, seed {wildcards.seed}"
    script:
        "../scripts/score_contacts.py"


# Apart from drawing: a file that does not fit to the sequences is refused before or while the model
# is fitted, not after it.
rule read_contacts:
    input:
        truth=lambda wildcards: figures.truth_file(wildcards.paper, wildcards.figure),
        train=lambda wildcards: paths.split_path(
            figures.entry_of(wildcards.paper, wildcards.figure)["source"], "train"
        ),
    output:
        known=KNOWN,
    log:
        f"{RESULTS}/logs/read_contacts/{{paper}}.{{figure}}.log",
    priority: SEQUENCES_FIRST
    localrule: True
    conda:
        "../../envs/numerics.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(30),
    params:
        given=lambda wildcards: digests([figures.truth_file(wildcards.paper, wildcards.figure)]),
        chain=lambda wildcards: figures.entry_of(wildcards.paper, wildcards.figure).get("chain"),
        code=lambda wildcards: code("read_contacts.py"),
    message:
        "Reading the known contacts of {wildcards.paper} {wildcards.figure}"
    script:
        "../scripts/read_contacts.py"


rule fit_curve:
    input:
        train=lambda wildcards: paths.split_of("curves", wildcards.curve, "train"),
        validation=lambda wildcards: paths.split_of("curves", wildcards.curve, "validation"),
        hamiltonian=lambda wildcards: paths.hamiltonians.format(
            **paths.entry("curves", wildcards.curve)
        ),
    output:
        table=CURVE,
    log:
        f"{RESULTS}/logs/fit_curve/{{curve}}.log",
    benchmark:
        f"{RESULTS}/usage/fit_curve/{{curve}}.jsonl"
    priority: jobs.urgency(CURVE, 15)  # long: not left for the end
    conda:
        "../../envs/learning.yaml"
    # One thread: small fits wait for each other's optimiser, which is not compiled.
    resources:
        mem_mb=growing(3000),
        runtime=growing(120),
    params:
        entry=lambda wildcards: paths.entry("curves", wildcards.curve),
        code=lambda wildcards: code("fit_curve.py"),
    message:
        "Fitting the curve {wildcards.curve}"
    script:
        "../scripts/fit_curve.py"
