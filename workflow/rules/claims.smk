"""Claims: what the same tables say of each statement of the papers, judged apart from drawing.

Needs   what the figure needs
Makes   results/claims/{paper}/{figure}.csv, results/scorecard.md (all of them), results/gates.json
        (how many gates hold), which is missing while a gate is contradicted
"""

for paper, figure in figures.judged():

    rule:
        name:
            f"judge_{paper}_{figure}".replace("-", "_")
        input:
            **figures.inputs(paper, figure),
        output:
            claims=f"{RESULTS}/claims/{paper}/{figure}.csv",
        log:
            f"{RESULTS}/logs/judge_figure/{paper}.{figure}.log",
        localrule: True
        conda:
            "../../envs/figures.yaml"
        resources:
            mem_mb=growing(2000),
            runtime=growing(30),
        params:
            paper=paper,
            figure=figure,
            block=figures.block(paper, figure, drawn=False),
            context=figures.needs(paper, figure, drawn=False),
            code=lambda wildcards, module=f"{paper}.{figure}".replace("-", "_"): code(
                "judge_figure.py", f"manybody.claims.{module}", figure=True
            ),
        message:
            f"Judging the claims of {paper} {figure}"
        script:
            "../scripts/judge_figure.py"


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


# The rows of one figure: of a config that is run for that figure alone.
rule write_figure_scorecard:
    input:
        claims=[f"{RESULTS}/claims/{{paper}}/{{figure}}.csv"],
    output:
        scorecard=f"{RESULTS}/scorecards/{{paper}}/{{figure}}.md",
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


# A job of its own, after the page: a job that fails takes its files with it and ends the run.
rule judge_gates:
    input:
        claims=figures.claims_of(figures.names()),
        page=f"{RESULTS}/index.html",
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
