"""Figures: each is a function of tables, in one module of the package.

Needs   the losses, histories, traces and theory that the figure's block in the config names
Makes   results/figures/{paper}/{figure}.pdf, .png, .csv (what is drawn), .claims.csv (records of
        what is judged) and .caption.rst
"""


rule make_figure:
    input:
        unpack(lambda wildcards: figures.inputs(wildcards.paper, wildcards.figure)),
    # The report shows the format whose label sorts first.
    output:
        pdf=report(
            f"{FIGURE}.pdf",
            caption="../report/figure.rst",
            category="{paper}",
            labels={"figure": "{figure}", "format": "print (PDF)"},
        ),
        png=report(
            f"{FIGURE}.png",
            caption="../report/figure.rst",
            category="{paper}",
            labels={"figure": "{figure}", "format": "image (PNG)"},
        ),
        csv=f"{FIGURE}.csv",
        claims=f"{FIGURE}.claims.csv",
        caption=f"{FIGURE}.caption.rst",
    log:
        f"{RESULTS}/logs/make_figure/{{paper}}.{{figure}}.log",
    wildcard_constraints:
        paper=named(paper for paper, _ in figures.names()),
        figure=named(figure for _, figure in figures.names()),
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
        block=lambda wildcards: figures.entry_of(wildcards.paper, wildcards.figure),
        inputs=lambda wildcards: figures.plain_inputs(wildcards.paper, wildcards.figure),
        caption=lambda wildcards: figures.caption(wildcards.paper, wildcards.figure),
        code=lambda wildcards: code(
            "make_figure.py",
            module_name(wildcards.paper, wildcards.figure),
            *ARCHITECTURES.values(),
        ),
    message:
        "Making {wildcards.paper} {wildcards.figure}"
    script:
        "../scripts/make_figure.py"


# A figure by its name, where one paper of the config has it.
for paper, figure in figures.short():

    rule:
        name:
            figure
        input:
            figures.files_of(paper, figure),
        localrule: True
