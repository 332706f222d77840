"""Rules about the repository that no other tool keeps: who may import what, lengths, pins, and a README that is true.

The order of imports inside explorer/ stands in pyproject.toml and is kept by import-linter; here it is only run.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXPLORER = ROOT / "explorer"
MODULES = sorted(EXPLORER.rglob("*.py"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
REQUIREMENTS = (ROOT / "requirements.txt").read_text(encoding="utf-8").split()

LONGEST_FILE = 300
LONGEST_FUNCTION = 60

# What these may know of explorer/: nothing else. The model is MiniMind's and the course's file runs alone.
KNOWS = {"model": {"model"}, "course": set(), "draw": {"axes", "draw"}, "axes": set()}
# Third parties with a home; elsewhere they may not be imported, not even late.
HOMES = {
    "gradio": ("explorer/ui/", "app.py"),
    "spaces": ("explorer/device.py",),
    "transformers": ("explorer/model/causal_lm.py", "explorer/model/generate.py", "explorer/checkpoints.py"),
}
# Table and drawing work on names and arrays.
WITHOUT_TORCH = ("axes.py", "quantities.py", "expression.py", "formulas.py", "draw/")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imported(path: Path) -> Iterator[str]:
    """Every module that a file imports anywhere in it, also late ones, by full name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}:{node.lineno} imports by a relative name; write it out"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


# -------------------------------------------------------------------------------------------------------- imports


def test_imports_run_one_way() -> None:
    python("from importlinter.cli import lint_imports_command as check; check(['--no-logo', '--no-cache'])")


@pytest.mark.parametrize("part", KNOWS)
def test_part_knows_only_what_it_may(part: str) -> None:
    for path in MODULES:
        if path.relative_to(EXPLORER).parts[0].removesuffix(".py") != part:
            continue
        known = {full.split(".")[1] for full in imported(path) if full.startswith("explorer.")}
        assert known <= KNOWS[part], f"{name_of(path)} imports explorer's {sorted(known - KNOWS[part])}"


@pytest.mark.parametrize("third_party", HOMES)
def test_third_party_stays_at_home(third_party: str) -> None:
    users = [name_of(path) for path in [*MODULES, ROOT / "app.py"] if third_party in map(top, imported(path))]
    strangers = [user for user in users if not user.startswith(HOMES[third_party])]
    assert not strangers, f"{third_party} belongs to {HOMES[third_party]}"


def top(full: str) -> str:
    return full.split(".")[0]


def test_tables_and_drawing_know_no_torch() -> None:
    for path in MODULES:
        if name_of(path).removeprefix("explorer/").startswith(WITHOUT_TORCH):
            assert "torch" not in map(top, imported(path)), name_of(path)


def test_start_leaves_transformers_alone() -> None:
    loaded = python("import app, explorer.ui, explorer, sys; print(*sorted({m.split('.')[0] for m in sys.modules}))")
    assert "gradio" in loaded.split()
    assert "transformers" not in loaded.split(), "importing it costs two seconds of every start"


# -------------------------------------------------------------------------------------------------------- lengths


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_files_and_functions_stay_short(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST_FILE, f"{name_of(path)} is too long: split it where its subject changes"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            assert lines <= LONGEST_FUNCTION, f"{name_of(path)}: {node.name} has {lines} lines"


# --------------------------------------------------------------------------------------------- requirements, README


def test_requirements_fit_every_platform() -> None:
    assert all(re.fullmatch(r"[a-z][a-z0-9-]*([<>=]=?[0-9.]+,?)*", line) for line in REQUIREMENTS), REQUIREMENTS
    assert "torch>=2.8" in REQUIREMENTS, "a pin or a local version would keep the platform's own torch out"
    assert not [line for line in REQUIREMENTS if line.startswith("spaces")], "the platform installs it"


def front_matter() -> dict[str, str]:
    """The settings of a Hugging Face Space at the top of the README."""
    block = re.match(r"---\n(.*?)\n---\n", README, re.DOTALL)
    assert block, "the README must open with the Space's settings"
    return dict(re.findall(r"^(\w+): *(.*)$", block[1], re.MULTILINE))


def test_space_settings() -> None:
    space = front_matter()
    assert f"gradio=={space['sdk_version']}" in REQUIREMENTS, "an unequal pin fails the Space's build"
    assert (space["sdk"], space["app_file"], space["license"]) == ("gradio", "app.py", "apache-2.0")
    assert len(space["short_description"].strip("\"'")) <= 60
    assert "suggested_hardware" not in space


def test_readme_has_the_two_set_up_commands() -> None:
    commands = re.findall(r"^```bash\n(.*?)\n```", README, re.MULTILINE | re.DOTALL)
    assert commands[:2] == ["pip install -r requirements.txt && python app.py", "bash tests/run"]


def tree_paths() -> list[str]:
    """The paths that the README's tree names: two spaces of indentation a level, folders end with a slash."""
    tree = re.search(r"^```tree\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert tree, "the README has no ```tree block"
    found, folders = [], []
    for line in tree[1].splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        for entry in re.split(r"\s{2,}", line.strip())[0].split(", "):
            found.append("".join(folders[:depth]) + entry)
        folders[depth:] = [entry]
    return found


def test_readme_tree_is_true() -> None:
    paths = tree_paths()
    assert len(paths) > 20
    assert not [path for path in paths if not (ROOT / path).exists()]


def test_readme_tree_names_every_part_of_the_explorer() -> None:
    parts = {f"explorer/{path.name}" + "/" * path.is_dir() for path in EXPLORER.iterdir() if path.name[0] not in "_."}
    assert not parts - set(tree_paths())


def test_readme_pictures_and_links_exist() -> None:
    prose = re.sub(r"^```.*?^```", "", README, flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#:]+)\)", prose):
        assert (ROOT / target).exists(), target
