"""Figures: each is a function of tables, drawn by one module of the package.

Needs   the losses, histories, traces and theory that the figure's block in the config names
Makes   results/figures/{paper}/{figure}.pdf, .png and .csv (what is drawn),
        results/checks/{paper}/{figure}.csv (the claims), results/scorecard.md (all of them),
        results/gates.json (how many gates hold), which is missing while a gate is contradicted
"""

for paper, figure in figure_names():

    rule:
        name:
            f"plot_{paper}_{figure}".replace("-", "_")
        input:
            **figure_inputs(paper, figure),
        output:
            pdf=report(
                f"{RESULTS}/figures/{paper}/{figure}.pdf",
                caption=f"../report/{paper}/{figure}.rst",
                category=paper,
                labels={"figure": figure, "format": "pdf"},
            ),
            png=report(
                f"{RESULTS}/figures/{paper}/{figure}.png",
                caption=f"../report/{paper}/{figure}.rst",
                category=paper,
                labels={"figure": figure, "format": "png"},
            ),
            csv=f"{RESULTS}/figures/{paper}/{figure}.csv",
            checks=f"{RESULTS}/checks/{paper}/{figure}.csv",
        log:
            f"{RESULTS}/logs/plot_figure/{paper}.{figure}.log",
        localrule: True
        conda:
            "../../envs/figures.yaml"
        resources:
            mem_mb=growing(2000),
            runtime=growing(30),
        params:
            paper=paper,
            figure=figure,
            block=config["figures"][paper][figure],
            context=needs(config["figures"][paper][figure], config),
            code=lambda wildcards, module=f"{paper}.{figure}".replace("-", "_"): code(
                "plot_figure.py", f"manybody.plotting.{module}", plotting=True
            ),
        message:
            f"Drawing {paper} {figure}"
        script:
            "../scripts/plot_figure.py"


rule write_scorecard:
    input:
        checks=[f"{RESULTS}/checks/{paper}/{figure}.csv" for paper, figure in figure_names()],
    output:
        scorecard=f"{RESULTS}/scorecard.md",
        page=report(
            f"{RESULTS}/scorecard.html", caption="../report/scorecard.rst", category="scorecard"
        ),
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


# The rows of one figure: of a config that is run for that figure alone.
rule write_figure_scorecard:
    input:
        checks=[f"{RESULTS}/checks/{{paper}}/{{figure}}.csv"],
    output:
        scorecard=f"{RESULTS}/scorecards/{{paper}}/{{figure}}.md",
        page=f"{RESULTS}/scorecards/{{paper}}/{{figure}}.html",
    log:
        f"{RESULTS}/logs/write_figure_scorecard/{{paper}}.{{figure}}.log",
    localrule: True
    conda:
        "../../envs/figures.yaml"
    params:
        code=lambda wildcards: code("write_scorecard.py"),
    message:
        "Gathering the rows of {wildcards.paper} {wildcards.figure}"
    script:
        "../scripts/write_scorecard.py"


# config/headline.yaml: claim 11 in three pieces, of which each needs the one before.
if ("simplicity", "headline") in figure_names():

    localrules:
        headline_models,
        headline_clones,
        headline,

    rule headline_models:
        input:
            figure_inputs("simplicity", "headline")["runs"],

    rule headline_clones:
        input:
            figure_inputs("simplicity", "headline")["clones"],

    rule headline:
        input:
            [f"{RESULTS}/figures/simplicity/headline.{ending}" for ending in ("pdf", "png", "csv")],
            f"{RESULTS}/scorecards/simplicity/headline.md",


# A job of its own: a job that fails takes its files with it, and the scorecard is to stay.
rule judge_gates:
    input:
        checks=[f"{RESULTS}/checks/{paper}/{figure}.csv" for paper, figure in figure_names()],
        scorecard=f"{RESULTS}/scorecard.md",
    output:
        gates=f"{RESULTS}/gates.json",
    log:
        f"{RESULTS}/logs/judge_gates.log",
    localrule: True
    conda:
        "../../envs/figures.yaml"
    params:
        code=lambda wildcards: code("judge_gates.py"),
    message:
        "Judging the gates"
    script:
        "../scripts/judge_gates.py"
