"""How the documentation is built. Neither the build nor the pages need a network; warnings are errors."""

from __future__ import annotations

import importlib.metadata
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("MPLBACKEND", "Agg")
sys.path.insert(0, str(Path(__file__).parent))  # gallery.py

project = "prinfold"
author = "The prinfold developers"
copyright = "2026, The prinfold developers"
release = importlib.metadata.version("prinfold")
version = ".".join(release.split(".")[:2])

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # formulas are set without a network too
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "auto_examples/**/*.ipynb", "auto_examples/**/*.py"]
nitpicky = False

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# The pages of the reference follow each module's __all__, so that a new public name needs no line here.
autosummary_generate = True
autosummary_ignore_module_all = False
autosummary_imported_members = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    # From what most people need to what few do, among the parts and within each.
    "within_subsection_order": "gallery.FromSimpleToSpecial",
    "subsection_order": [
        "../examples/gtm",
        "../examples/curves",
        "../examples/trees",
        "../examples/density",
        "../examples/kernel_manifolds",
        "../examples/pps",
        "../examples/som",
        "../examples/surfaces",
        "../examples/applications",
        "../examples/around",
    ],
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"/_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "capture_repr": (),
    "remove_config_comments": True,
    "reset_modules": ("matplotlib", "gallery.house_style"),
}
# The gallery shows figures by saving them.
warnings.filterwarnings("ignore", message=".*FigureCanvasAgg is non-interactive.*")

html_theme = "pydata_sphinx_theme"
html_title = f"prinfold {version}"
html_static_path = ["_static"]
html_css_files = ["house.css"]
html_show_sourcelink = False
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def skip_what_is_not_ours(app: Any, what: str, name: str, obj: object, skip: bool, options: Any) -> bool | None:
    """Leave out what classes inherit from other libraries, which document it themselves."""
    function = getattr(obj, "fget", None) or getattr(obj, "func", None) or getattr(obj, "__func__", None) or obj
    home = getattr(function, "__module__", None)
    foreign = callable(function) and not str(home).startswith("prinfold")
    return True if foreign or re.fullmatch(r"set_\w+_request", name) else None


def link_the_names(app: Any, page: str, source: list[str]) -> None:
    """Turn the plain names of the reference into links, so that the page reads as Markdown too."""
    if page != "api/index":
        return
    front, *sections = re.split(r"(?m)^(?=## prinfold)", source[0])
    for i, section in enumerate(sections):
        module = section.split(maxsplit=2)[1]
        sections[i] = re.sub(r"(?<!`)`(\w+)`", rf"{{py:obj}}`\1 <{module}.\1>`", section)
    source[0] = front + "".join(sections)


def setup(app: Any) -> None:
    app.connect("autodoc-skip-member", skip_what_is_not_ours)
    app.connect("source-read", link_the_names)
