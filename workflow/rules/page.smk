"""The page and the scorecard: what a run has to say, in one file each.

Needs   the figures, with their claims and captions, and the clones of the config, or of one figure
Makes   results/scorecard.md, all claims; results/index.html: claims, figures with captions, cards of
        clones, where the run comes from; results/{paper}-{figure}.html and
        results/scorecards/{paper}/{figure}.md, the same of a figure with a config of its own
"""


rule write_scorecard:
    input:
        claims=figures.claims_of(figures.names()),
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


# The claims of one figure: of a config that is run for that figure alone.
use rule write_scorecard as write_figure_scorecard with:
    input:
        claims=[f"{FIGURE}.claims.csv"],
    output:
        scorecard=f"{RESULTS}/scorecards/{{paper}}/{{figure}}.md",
    log:
        f"{RESULTS}/logs/write_figure_scorecard/{{paper}}.{{figure}}.log",
    message:
        "Gathering the claims of {wildcards.paper} {wildcards.figure}"


rule write_page:
    input:
        **figures.page_inputs(figures.names()),
    output:
        page=report(f"{RESULTS}/index.html", category="page"),
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


for paper, figure in figures.own():

    rule:
        name:
            f"write_page_of_{figure}"
        input:
            **figures.page_inputs([(paper, figure)], f"{paper}.{figure}."),
        output:
            page=f"{RESULTS}/{paper}-{figure}.html",
        log:
            f"{RESULTS}/logs/write_page.{paper}.{figure}.log",
        localrule: True
        conda:
            "../../envs/figures.yaml"
        resources:
            mem_mb=growing(1000),
            runtime=growing(30),
        params:
            figures=[(paper, figure)],
            shown={f"{paper}/{figure}": figures.shown_clones(paper, figure)},
            config=figures.config_digest(),
            texts=lambda wildcards: figures.page_texts(),
            code=lambda wildcards: code("write_page.py", *ARCHITECTURES.values()),
        message:
            f"Writing the page of {paper} {figure}"
        script:
            "../scripts/write_page.py"
