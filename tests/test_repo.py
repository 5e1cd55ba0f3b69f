"""The repository agrees with itself: versions, names, the text's code, and one noun everywhere."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import matplotlib as mpl
import pytest
import yaml
from tools.test_times import expensive_functions

import prinfold
from tests.house import ROOT, code_fences, run_fences

# Machine paths and package registries do not belong in any file.
FORBIDDEN = re.compile(
    r"(?<![\w.)}])/(?:work|root|home)\b|pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|anaconda\.org|debian\.org"
)


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_one_version_everywhere() -> None:
    version = tomllib.loads(text("pyproject.toml"))["project"]["version"]
    newest = re.search(r"^## \[(\d+\.\d+\.\d+)\]", text("CHANGELOG.md"), re.MULTILINE)
    assert newest is not None
    assert newest.group(1) == version
    assert yaml.safe_load(text("CITATION.cff"))["version"] == version
    assert prinfold.__version__ == importlib.metadata.version("prinfold") == version


def test_the_readme_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    assert code_fences(ROOT / "README.md")
    run_fences(ROOT / "README.md")


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "VISION.md", "CHANGELOG.md", "SECURITY.md"])
def test_links_between_files_lead_somewhere(page: str) -> None:
    links = re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", text(page))
    assert [link for link in links if not (ROOT / link).exists()] == []


def tracked_files() -> list[Path]:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


AT_THE_ROOT = {
    *(".ci", ".git-blame-ignore-revs", ".github", ".gitignore", ".pre-commit-config.yaml", ".readthedocs.yaml"),
    *("CHANGELOG.md", "CITATION.cff", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md"),
    *("SECURITY.md", "VISION.md", "pyproject.toml"),
    *("benchmarks", "docs", "examples", "src", "tests", "tools"),
}
"""All that the repository keeps at its root: whatever else lies there was left behind by a run."""


def test_nothing_was_left_at_the_root() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in tracked_files()} == AT_THE_ROOT


def test_no_machine_paths_and_no_registries() -> None:
    found = []
    for path in tracked_files():
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        found += [
            f"{path.relative_to(ROOT)}:{n}: {hit.group()}"
            for n, line in enumerate(lines, 1)
            if (hit := FORBIDDEN.search(line))
        ]
    assert found == []


@pytest.mark.parametrize("line", ["cd /wo" + "rk/main", "see pypi" + ".org/simple", '"/ro' + 'ot/x"'])
def test_forbidden_words_are_caught(line: str) -> None:
    assert FORBIDDEN.search(line)


def test_importing_an_estimator_leaves_the_drawing_library_alone() -> None:
    program = "import sys; from prinfold import GTM; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_tests_left_to_the_full_run_are_there() -> None:
    lines = (ROOT / "tests/full_only.txt").read_text(encoding="utf-8").splitlines()
    listed = [line.partition("\t")[0] for line in lines]
    gone = [each for each in listed if f"def {each.rpartition('::')[2]}(" not in text(each.partition("::")[0])]
    assert gone == [], "make test-times makes the list anew"


def test_times_of_tests_are_added_up_over_their_cases() -> None:
    x, y, z, oracle = (
        "tests/a.py::test_x",
        "tests/a.py::test_y",
        "tests/b.py::test_z",
        "tests/oracles/test_a.py::test_z",
    )
    times = {f"{x}[1]": 0.4, f"{x}[2]": 0.3, f"{x}[3]": 0.1, y: 0.1, z: 0.8, oracle: 9.0}
    lines = [f"{seconds}\t{nodeid}" for nodeid, seconds in times.items()]
    assert expensive_functions(lines, 0.5) == {x: "3", z: ""}
