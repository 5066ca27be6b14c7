"""Figures: each is a function of tables, in one module of the package.

Needs   the losses, histories, traces and theory that the figure's block in the config names
Makes   results/figures/{paper}/{figure}.pdf, .png, .csv (what is drawn), .claims.csv (records of
        what is judged) and .caption.rst
"""


rule make_figure:
    input:
        unpack(lambda wildcards: figure_inputs(wildcards.paper, wildcards.figure)),
    # The report shows the format whose label sorts first.
    output:
        pdf=report(
            FIGURE.format(ending="pdf"),
            caption="../report/figure.rst",
            category="{paper}",
            labels={"figure": "{figure}", "format": "print (PDF)"},
        ),
        png=report(
            FIGURE.format(ending="png"),
            caption="../report/figure.rst",
            category="{paper}",
            labels={"figure": "{figure}", "format": "image (PNG)"},
        ),
        csv=FIGURE.format(ending="csv"),
        claims=FIGURE.format(ending="claims.csv"),
        caption=FIGURE.format(ending="caption.rst"),
    log:
        f"{RESULTS}/logs/make_figure/{{paper}}.{{figure}}.log",
    priority: DRAWN
    localrule: True
    conda:
        "../../envs/figures.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(30),
    params:
        paper=lambda wildcards: wildcards.paper,
        figure=lambda wildcards: wildcards.figure,
        block=lambda wildcards: config["figures"][wildcards.paper][wildcards.figure],
        inputs=lambda wildcards: figure_keys(wildcards.paper, wildcards.figure),
        caption=lambda wildcards: figure_caption(wildcards.paper, wildcards.figure),
        code=lambda wildcards: code(
            "make_figure.py",
            module_name(wildcards.paper, wildcards.figure),
            *ARCHITECTURES.values(),
        ),
    message:
        "Making {wildcards.paper} {wildcards.figure}"
    script:
        "../scripts/make_figure.py"


# Figures with a config of their own, in three pieces, of which each needs the one before: models,
# clones, and the figure with its claims.
for paper, own in own_figures():

    rule:
        name:
            f"{own}_models"
        input:
            figure_inputs(paper, own)["runs"],
        localrule: True

    rule:
        name:
            f"{own}_clones"
        input:
            figure_inputs(paper, own)["clones"],
        localrule: True

    rule:
        name:
            own
        input:
            figure_files([(paper, own)]),
            f"{RESULTS}/scorecards/{paper}/{own}.md",
            f"{RESULTS}/{paper}-{own}.html",
        localrule: True
