"""Sequences: text to documents, a tokenizer, and blocks of L tokens; samples of a Hamiltonian.

Needs   a corpus of the config: docstrings of installed packages, a download, the user's files;
        or a Hamiltonian, a tree ... of the config, and the user's own tensors if it names any;
        or an alignment
Makes   results/corpora/{corpus}/{train,validation,test}.parquet, the documents of each split
        results/sequences/{source}/tokenizer.json, trained on the training split, or that of a
        model with special.json, what its special tokens are
        results/sequences/{source}/{train,validation,test}.parquet, the sequences
        results/sequences/{source}/card.md, what the reader of an alignment read and passed over
        results/sequences/{source}/overlap.json, the test blocks that stand in the training text
        results/sequences/{source}/hamiltonian.safetensors, J, U and beta of a source with one
        Sources that are drawn exactly, such as trees and code laws, have one rule, which calls the
        module of the kind.
"""


rule collect_corpus:
    input:
        files=lambda wildcards: sources.corpus_files(wildcards.corpus),
    output:
        **{split: f"{RESULTS}/corpora/{{corpus}}/{split}.parquet" for split in SPLITS},
    log:
        f"{RESULTS}/logs/collect_corpus/{{corpus}}.log",
    benchmark:
        f"{RESULTS}/usage/collect_corpus/{{corpus}}.jsonl"
    priority: SEQUENCES_FIRST
    # The docstrings are those of what torch and transformers bring along.
    conda:
        "../../envs/learning.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(240),
    params:
        given=lambda wildcards: digests(sources.corpus_files(wildcards.corpus)),
        corpus=lambda wildcards: paths.entry("corpora", wildcards.corpus),
        downloads=f"{RESULTS}/downloads",
        code=lambda wildcards: code("collect_corpus.py"),
    message:
        "Collecting the documents of {wildcards.corpus}"
    script:
        "../scripts/collect_corpus.py"


rule train_tokenizer:
    input:
        documents=lambda wildcards: sources.documents(wildcards.source, "train"),
    output:
        tokenizer=f"{SEQUENCES}/tokenizer.json",
    log:
        f"{RESULTS}/logs/train_tokenizer/{{source}}.log",
    benchmark:
        f"{RESULTS}/usage/train_tokenizer/{{source}}.jsonl"
    wildcard_constraints:
        source=named(sources.trained_tokenizers()),
    priority: SEQUENCES_FIRST
    conda:
        "../../envs/numerics.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(120),
    params:
        vocabulary=lambda wildcards: paths.entry("sources", wildcards.source)["vocabulary"],
        end_of_document=lambda wildcards: paths.entry("sources", wildcards.source)[
            "end_of_document"
        ],
        code=lambda wildcards: code("train_tokenizer.py"),
    message:
        "Training the tokenizer of {wildcards.source}"
    script:
        "../scripts/train_tokenizer.py"


rule take_tokenizer:
    input:
        files=lambda wildcards: sources.source_files(wildcards.source),
    output:
        tokenizer=f"{SEQUENCES}/tokenizer.json",
        special=f"{SEQUENCES}/special.json",
    log:
        f"{RESULTS}/logs/take_tokenizer/{{source}}.log",
    benchmark:
        f"{RESULTS}/usage/take_tokenizer/{{source}}.jsonl"
    wildcard_constraints:
        source=named(sources.sources_with("special.json")),
    priority: SEQUENCES_FIRST
    conda:
        "../../envs/learning.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(30),
    params:
        given=lambda wildcards: digests(sources.source_files(wildcards.source)),
        tokenizer=lambda wildcards: paths.entry("sources", wildcards.source)["tokenizer"],
        downloads=f"{RESULTS}/downloads",
        code=lambda wildcards: code("take_tokenizer.py"),
    message:
        "Taking the tokenizer of {wildcards.source}"
    script:
        "../scripts/take_tokenizer.py"


rule encode_sequences:
    input:
        documents=lambda wildcards: sources.documents(wildcards.source, wildcards.split),
        tokenizer=f"{SEQUENCES}/tokenizer.json",
        special=lambda wildcards: sources.file_beside(wildcards.source, "special.json"),
    output:
        sequences=f"{SEQUENCES}/{{split}}.parquet",
    log:
        f"{RESULTS}/logs/encode_sequences/{{source}}.{{split}}.log",
    benchmark:
        f"{RESULTS}/usage/encode_sequences/{{source}}.{{split}}.jsonl"
    wildcard_constraints:
        source=named(sources.made_by("encode_sequences")),
    priority: SEQUENCES_FIRST
    conda:
        "../../envs/numerics.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(120),
    params:
        source=lambda wildcards: paths.entry("sources", wildcards.source),
        code=lambda wildcards: code("encode_sequences.py"),
    message:
        "Tokenising the {wildcards.split} split of {wildcards.source}"
    script:
        "../scripts/encode_sequences.py"


rule measure_overlap:
    input:
        train=f"{SEQUENCES}/train.parquet",
        test=f"{SEQUENCES}/test.parquet",
    output:
        overlap=f"{SEQUENCES}/overlap.json",
    log:
        f"{RESULTS}/logs/measure_overlap/{{source}}.log",
    benchmark:
        f"{RESULTS}/usage/measure_overlap/{{source}}.jsonl"
    wildcard_constraints:
        source=named(sources.sources_with("overlap.json")),
    priority: SEQUENCES_FIRST
    conda:
        "../../envs/numerics.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(60),
    params:
        code=lambda wildcards: code("measure_overlap.py"),
    message:
        "Comparing the test blocks of {wildcards.source} with its training text"
    script:
        "../scripts/measure_overlap.py"


rule sample_hamiltonian:
    input:
        tensors=lambda wildcards: sources.source_files(wildcards.source),
    output:
        **{split: f"{SEQUENCES}/{split}.parquet" for split in SPLITS},
        hamiltonian=HAMILTONIAN,
    log:
        f"{RESULTS}/logs/sample_hamiltonian/{{source}}.log",
    benchmark:
        f"{RESULTS}/usage/sample_hamiltonian/{{source}}.jsonl"
    wildcard_constraints:
        source=named(sources.made_by("sample_hamiltonian")),
    priority: WIDE
    conda:
        "../../envs/numerics.yaml"
    threads: lambda wildcards: sources.sampling_threads(wildcards.source)
    resources:
        mem_mb=growing(2000),
        runtime=growing(120),
    params:
        given=lambda wildcards: digests(sources.source_files(wildcards.source)),
        source=lambda wildcards: paths.entry("sources", wildcards.source),
        module=lambda wildcards: sources.module(wildcards.source),
        code=lambda wildcards: code("sample_hamiltonian.py", sources.module(wildcards.source)),
        tables=lambda wildcards: sources.package_tables(wildcards.source),
    message:
        "Sampling {wildcards.source}"
    script:
        "../scripts/sample_hamiltonian.py"


rule draw_sequences:
    input:
        given=lambda wildcards: sources.drawn_from(wildcards.source),
    output:
        **{split: f"{SEQUENCES}/{split}.parquet" for split in SPLITS},
    log:
        f"{RESULTS}/logs/draw_sequences/{{source}}.log",
    benchmark:
        f"{RESULTS}/usage/draw_sequences/{{source}}.jsonl"
    wildcard_constraints:
        source=named(sources.made_by("draw_sequences")),
    priority: SEQUENCES_FIRST
    conda:
        "../../envs/numerics.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(120),
    params:
        given=lambda wildcards: digests(sources.source_files(wildcards.source)),
        source=lambda wildcards: paths.entry("sources", wildcards.source),
        module=lambda wildcards: sources.module(wildcards.source),
        code=lambda wildcards: code("draw_sequences.py", sources.module(wildcards.source)),
    message:
        "Drawing {wildcards.source}"
    script:
        "../scripts/draw_sequences.py"


rule read_alignment:
    input:
        alignment=lambda wildcards: sources.source_files(wildcards.source),
    output:
        **{split: f"{SEQUENCES}/{split}.parquet" for split in SPLITS},
        sequence_weights=f"{SEQUENCES}/weights.parquet",
        card=f"{SEQUENCES}/card.md",
    log:
        f"{RESULTS}/logs/read_alignment/{{source}}.log",
    benchmark:
        f"{RESULTS}/usage/read_alignment/{{source}}.jsonl"
    wildcard_constraints:
        source=named(sources.made_by("read_alignment")),
    priority: WIDE
    conda:
        "../../envs/numerics.yaml"
    threads: 4
    resources:
        mem_mb=growing(4000),
        runtime=growing(120),
    params:
        given=lambda wildcards: digests(sources.source_files(wildcards.source)),
        source=lambda wildcards: paths.entry("sources", wildcards.source),
        code=lambda wildcards: code("read_alignment.py"),
    message:
        "Reading the alignment {wildcards.source}"
    script:
        "../scripts/read_alignment.py"
