"""Families: a pair model of each alignment of a list, many of them in a job.

Needs   the alignments that the file of an entry of `families` names, their structures, measured
        effects and sequences to score
Makes   results/families/{families}/{family}/, of each family the scores of its pairs
        (contacts.csv, contacts.rr), how many of the best are contacts (precision.csv), its
        sequences (family.fasta) and what the page says of it (family.json); if they are asked
        for, energies, mutations and generated sequences, as the commands of these names make them
        results/families/{families}/index.html, the page of all, with those that cannot be fitted
"""


rule fit_families:
    # Those that are there: for a family whose file is not, the page says so.
    input:
        given=lambda wildcards: families.files(wildcards.families, wildcards.chunk),
    output:
        records=CHUNK,
    log:
        f"{RESULTS}/logs/fit_families/{{families}}/{{chunk}}.log",
    benchmark:
        f"{RESULTS}/usage/fit_families/{{families}}.{{chunk}}.jsonl"
    conda:
        "../../envs/learning.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(240),
    params:
        entries=lambda wildcards: families.chunk(wildcards.families, wildcards.chunk),
        given=lambda wildcards: digests(families.files(wildcards.families, wildcards.chunk)),
        options=lambda wildcards: checked.families[wildcards.families].options,
        code=lambda wildcards: code("fit_families.py"),
    message:
        "Fitting families of {wildcards.families}, part {wildcards.chunk}"
    script:
        "../scripts/fit_families.py"


# Energies, mutations or new sequences of the families of a part, as `use` says.
rule use_families:
    input:
        records=CHUNK,
        given=lambda wildcards: families.files(
            wildcards.families, wildcards.chunk, [USES[wildcards.use]]
        ),
    output:
        said=USED,
    log:
        f"{RESULTS}/logs/use_families/{{families}}/{{use}}/{{chunk}}.log",
    benchmark:
        f"{RESULTS}/usage/use_families/{{families}}.{{use}}.{{chunk}}.jsonl"
    conda:
        "../../envs/learning.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(240),
    params:
        entries=lambda wildcards: families.chunk(wildcards.families, wildcards.chunk),
        given=lambda wildcards: digests(
            families.files(wildcards.families, wildcards.chunk, [USES[wildcards.use]])
        ),
        reading=lambda wildcards: checked.families[wildcards.families].options["reading"],
        generate=lambda wildcards: checked.families[wildcards.families].generate,
        code=lambda wildcards: code("use_families.py"),
    message:
        "Making {wildcards.use} of {wildcards.families}, part {wildcards.chunk}"
    script:
        "../scripts/use_families.py"


rule write_families:
    input:
        records=lambda wildcards: families.chunks(wildcards.families),
        used=lambda wildcards: families.used(wildcards.families),
    output:
        page=report(FAMILIES, category="families"),
    log:
        f"{RESULTS}/logs/write_families/{{families}}.log",
    localrule: True
    conda:
        "../../envs/learning.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(30),
    params:
        code=lambda wildcards: code("write_families.py"),
    message:
        "Writing the page of the families {wildcards.families}"
    script:
        "../scripts/write_families.py"


# The families of all lists alone.
rule families:
    input:
        families.pages(),
    localrule: True
