"""Settings of the site: `make docs` writes it to build/docs."""

import tomllib
from pathlib import Path

declared = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))[
    "project"
]
repository = declared.get("urls", {}).get("Repository")

project, release = declared["name"], declared["version"]
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx_design", "pages"]
exclude_patterns = ["results.in.md", "gallery", "style", "templates"]
# A page that no list names is found by links and by the search.
suppress_warnings = ["toc.not_included"]
nitpick_ignore_regex = [("py:class", ".*")]  # types of other packages

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
nb_execution_mode = "off"

autodoc_typehints_format = "short"
maximum_signature_line_length = 60
python_use_unqualified_type_names = True

html_theme = "pydata_sphinx_theme"
html_title = project
# where links to files outside docs/ lead; where no repository is declared they are words
html_context = {"blob": f"{repository}/blob/main/" if repository else ""}
html_static_path = ["style"]
html_css_files, html_js_files = ["site.css"], ["tables.js"]
html_sidebars = {page: [] for page in ("index", "compared", "generated/api")}
html_theme_options = {
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": [],
    "header_links_before_dropdown": 6,
    "search_bar_text": "Search",
    "show_toc_level": 2,
}
