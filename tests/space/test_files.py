"""What a Hugging Face Space reads of this repository: settings, and requirements as it resolves them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
TORCH = ("2.8.0", "2.11.0")  # what ZeroGPU takes, from … to
PYTHON = "3.12"
COLOURS = ("red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray")
UNREACHABLE = re.compile(
    r"error sending request|client error|dns error|connection (refused|reset)|timed out|tunnel|Failed to fetch",
    re.IGNORECASE,
)


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    """The front matter, read as the platform reads it."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.startswith("---\n")
    read = yaml.safe_load(text.split("---\n")[1])
    assert isinstance(read, dict)
    return read


@pytest.fixture(scope="module")
def requirements() -> dict[str, Requirement]:
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    found = [Requirement(line) for line in lines if line.strip() and not line.startswith("#")]
    assert len({r.name for r in found}) == len(found), "nothing is asked for twice"
    return {r.name: r for r in found}


def test_settings(settings: dict[str, Any], requirements: dict[str, Requirement]) -> None:
    assert settings["sdk"] == "gradio"
    assert str(requirements["gradio"].specifier) == f"=={settings['sdk_version']}", "an unequal pin fails the build"
    assert settings["python_version"] == PYTHON, "a text: 3.10 as a number would be 3.1"
    assert (ROOT / settings["app_file"]).is_file()
    assert 10 < len(settings["short_description"]) <= 60
    assert settings["title"]
    assert settings["license"] == "apache-2.0"
    assert {settings["colorFrom"], settings["colorTo"]} <= set(COLOURS)
    assert not {"suggested_hardware", "suggested_storage", "hf_oauth"} & settings.keys()


def test_requirements_leave_the_platform_its_own(requirements: dict[str, Requirement]) -> None:
    assert "spaces" not in requirements
    for version in TORCH:
        assert requirements["torch"].specifier.contains(version), f"torch {version} must fit"
    assert not any(r.url or r.extras for r in requirements.values()), "no index address, no extra such as gradio[mcp]"
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    assert "--" not in text
    assert "+" not in text, "no local version"


def test_nothing_installed_here_refuses_the_platform_s_torch(requirements: dict[str, Requirement]) -> None:
    for name in requirements:
        for line in requires(name) or []:
            need = Requirement(line)
            applies = need.marker is None or need.marker.evaluate({"extra": "", "python_version": PYTHON})
            if need.name == "torch" and applies:
                assert all(need.specifier.contains(version) for version in TORCH), f"{name} needs {line}"


@pytest.mark.timeout(420)
def test_requirements_resolve_as_on_the_platform(requirements: dict[str, Requirement], tmp_path: Path) -> None:
    """With what the platform adds: its torch, `spaces`, and gradio's extras, which hold pydantic at 2.12.

    uv reads the packages' metadata alone; pip would fetch the accelerator builds' gigabytes to say the same.
    """
    pin = requirements["gradio"].specifier
    added, held = tmp_path / "added.txt", tmp_path / "held.txt"
    added.write_text(f"gradio[oauth,mcp]{pin}\nspaces\n")
    held.write_text(f"pydantic<=2.12.5\ntorch=={TORCH[1]}\n")
    command = [
        sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--no-progress",
        "--only-binary", ":all:", "--python-version", PYTHON, "--python-platform", "x86_64-manylinux_2_28",
        "--constraint", str(held), str(ROOT / "requirements.txt"), str(added),
    ]  # fmt: skip
    environment = {name: value for name, value in os.environ.items() if name != "UV_OFFLINE"}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=400)
    except subprocess.TimeoutExpired:
        pytest.skip("the package registry is too slow here")
    if done.returncode and UNREACHABLE.search(done.stderr):
        pytest.skip(f"no package registry can be asked here: {done.stderr.strip().splitlines()[-1][:200]}")
    assert done.returncode == 0, done.stderr[-3000:]
    chosen = dict(line.split("==") for line in done.stdout.splitlines() if "==" in line)
    chosen = {name.partition("[")[0]: Version(version.partition(" ")[0]) for name, version in chosen.items()}
    assert chosen["torch"] == Version(TORCH[1])
    assert chosen["pydantic"] < Version("2.13")
    for name in ("gradio", "plotly", "transformers"):
        assert chosen[name] in requirements[name].specifier
    assert {"mcp", "spaces", *requirements} <= chosen.keys()
