"""The page: one file that shows a run, and opens by itself.

Needs   the figures, the claims and the clones of the config
Makes   results/index.html: verdicts, figures with captions, cards of clones, where the run comes from
"""


rule write_page:
    input:
        figures=figure_files(),
        claims=[f"{RESULTS}/claims/{paper}/{figure}.csv" for paper, figure in judged_figures()],
        clones=[clone_path(clone) for clone in figure_parts("clones")],
        cards=[CARDS.format(source=source) for source in carded_clones()],
        losses=tested_generators(),
        ngrams=counted_sources(),
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
        figures=figure_names(),
        shown={"/".join(name): shown_clones(*name) for name in figure_names()},
        config=config_digest(),
        texts=lambda wildcards: page_texts(),
        code=lambda wildcards: code("write_page.py", figure=True),
    message:
        "Writing the page of the run"
    script:
        "../scripts/write_page.py"
