"""The page: one file that shows a run, and opens by itself.

Needs   the figures, the claims and the clones of the config, or of one figure
Makes   results/index.html: verdicts, figures with captions, cards of clones, where the run comes
        from; results/{paper}-{figure}.html, the same of a figure with a config of its own
"""


rule write_page:
    input:
        **figures.page_inputs(figures.names()),
    output:
        page=report(f"{RESULTS}/index.html", caption="../report/scorecard.rst", category="page"),
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
        texts=lambda wildcards: figures.page_texts(figures.names()),
        code=lambda wildcards: code("write_page.py", figure=True),
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
            texts=lambda wildcards, name=(paper, figure): figures.page_texts([name]),
            code=lambda wildcards: code("write_page.py", figure=True),
        message:
            f"Writing the page of {paper} {figure}"
        script:
            "../scripts/write_page.py"
