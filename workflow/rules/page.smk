"""The page and the scorecard: what a run has to say, in one file each.

Needs   the figures, with their claims and captions, and the clones of the config
Makes   results/scorecard.md, all claims; results/index.html: claims, figures with captions, cards of
        clones, where the run comes from; results/config.yaml, the config with all its defaults
"""


rule write_scorecard:
    input:
        claims=figures.claims(),
    output:
        scorecard=f"{RESULTS}/scorecard.md",
    log:
        f"{RESULTS}/logs/write_scorecard.log",
    localrule: True
    conda:
        "../../envs/figures.yaml"
    params:
        code=lambda wildcards: code("write_scorecard.py"),
    message:
        "Gathering the scorecard"
    script:
        "../scripts/write_scorecard.py"


rule write_page:
    input:
        **figures.page_inputs(),
    output:
        page=report(f"{RESULTS}/index.html", category="page"),
        config=f"{RESULTS}/config.yaml",
    log:
        f"{RESULTS}/logs/write_page.log",
    localrule: True
    conda:
        "../../envs/figures.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(30),
    params:
        figures=figures.names(),
        shown={"/".join(name): figures.shown_clones(*name) for name in figures.names()},
        config=figures.config_digest(),
        texts=lambda wildcards: figures.page_texts(),
        code=lambda wildcards: code("write_page.py", *ARCHITECTURES.values()),
    message:
        "Writing the page of the run"
    script:
        "../scripts/write_page.py"
