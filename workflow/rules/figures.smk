"""Figures: each is a function of tables, drawn by one module of the package.

Needs   the losses, histories, traces and theory that the figure's block in the config names
Makes   results/figures/{paper}/{figure}.pdf, .png and .csv (what is drawn)
"""

for paper, figure in figures.names():

    rule:
        name:
            f"plot_{paper}_{figure}".replace("-", "_")
        input:
            **figures.inputs(paper, figure, drawn=True),
        # The report shows the format whose label sorts first.
        output:
            pdf=report(
                f"{RESULTS}/figures/{paper}/{figure}.pdf",
                caption=f"../report/{paper}/{figure}.rst",
                category=paper,
                labels={"figure": figure, "format": "print (PDF)"},
            ),
            png=report(
                f"{RESULTS}/figures/{paper}/{figure}.png",
                caption=f"../report/{paper}/{figure}.rst",
                category=paper,
                labels={"figure": figure, "format": "image (PNG)"},
            ),
            csv=f"{RESULTS}/figures/{paper}/{figure}.csv",
        log:
            f"{RESULTS}/logs/plot_figure/{paper}.{figure}.log",
        priority: DRAWN
        localrule: True
        conda:
            "../../envs/figures.yaml"
        resources:
            mem_mb=growing(2000),
            runtime=growing(30),
        params:
            paper=paper,
            figure=figure,
            block=figures.block(paper, figure, drawn=True),
            context=figures.needs(paper, figure, drawn=True),
            code=lambda wildcards, module=f"{paper}.{figure}".replace("-", "_"): code(
                "plot_figure.py", f"manybody.plotting.{module}", figure=True
            ),
        message:
            f"Drawing {paper} {figure}"
        script:
            "../scripts/plot_figure.py"


# Figures with a config of their own, in three pieces, of which each needs the one before: models,
# clones, and the figure with its claims.
for _, own in figures.own():

    rule:
        name:
            f"{own}_models"
        input:
            figures.inputs("simplicity", own)["runs"],
        localrule: True

    rule:
        name:
            f"{own}_clones"
        input:
            figures.inputs("simplicity", own)["clones"],
            figures.inputs("simplicity", own)["sequences"],
        localrule: True

    rule:
        name:
            own
        input:
            [f"{RESULTS}/figures/simplicity/{own}.{ending}" for ending in ("pdf", "png", "csv")],
            f"{RESULTS}/scorecards/simplicity/{own}.md",
            f"{RESULTS}/simplicity-{own}.html",
        localrule: True
