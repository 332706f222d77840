"""What a Hugging Face Space reads of this repository: settings, and requirements as it resolves them."""

from __future__ import annotations

import json
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
    r"NewConnectionError|Max retries exceeded|Temporary failure in name resolution|Connection (refused|reset)|"
    r"Read timed out|ProxyError|No matching distribution found for (gradio|transformers|numpy)\b", re.IGNORECASE,
)  # fmt: skip


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

    torch itself is left out here: only the accelerator builds' gigabytes would come with it.
    """
    wanted = [str(r) for r in requirements.values() if r.name != "torch"]
    pin = requirements["gradio"].specifier
    report = tmp_path / "report.json"
    (tmp_path / "constraints.txt").write_text("pydantic<=2.12.5\ntorch==2.11.0\n")
    platform = (
        "--python-version", PYTHON, "--implementation", "cp", "--only-binary=:all:",
        "--platform", "manylinux_2_28_x86_64", "--platform", "manylinux2014_x86_64",
    )  # fmt: skip
    command = [
        sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet", "--retries", "1",
        "--target", str(tmp_path / "t"), "--report", str(report), "--constraint", str(tmp_path / "constraints.txt"),
        *platform, *wanted, f"gradio[oauth,mcp]{pin}", "spaces",
    ]  # fmt: skip
    environment = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=400)
    except subprocess.TimeoutExpired:
        pytest.skip("the package registry is too slow here")
    if done.returncode and ("No module named pip" in done.stderr or UNREACHABLE.search(done.stderr)):
        pytest.skip(f"no package registry can be asked here: {done.stderr.strip().splitlines()[-1][:200]}")
    assert done.returncode == 0, done.stderr[-3000:]
    chosen = {
        item["metadata"]["name"].lower().replace("_", "-"): Version(item["metadata"]["version"])
        for item in json.loads(report.read_text())["install"]
    }
    assert chosen["gradio"] in pin
    assert chosen["pydantic"] < Version("2.13")
    assert chosen["plotly"] in requirements["plotly"].specifier
    assert "mcp" in chosen
    assert chosen.get("torch", Version("2.11.0")) == Version("2.11.0")
