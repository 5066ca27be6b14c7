"""The workflow, where `snakemake` looks for it in the clone."""


include: "workflow/Snakefile"


# Snakemake takes no default target from a file that is included.
workflow.default_target = "all"
