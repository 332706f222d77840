"""The Hub: only where allowed, only what is pinned, only harmless files, sizes first. A stand-in answers for it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from explorer.checkpoints import CheckpointError, HubSource, Limits, hub, hub_allowed, load
from explorer.checkpoints.hub import fetch
from explorer.checkpoints.shapes import model_shapes
from explorer.model.config import MiniMindConfig
from tests.checkpoints.making import SIZES, random_weights, write_folder

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SOURCE = HubSource("someone/MiniMind-3", COMMIT)
CONFIG = {"model_type": "qwen3", **SIZES, "rope_theta": 1e6, "tie_word_embeddings": True}


@dataclass
class FakeHub:
    """Answers as HfApi does, from a folder, and remembers what was asked."""

    folder: Path
    sha: str = COMMIT
    sizes: dict[str, int | None] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)

    def model_info(self, repo_id: str, **options: Any) -> Any:
        self.asked.append({"repo_id": repo_id, **options})
        files = [
            SimpleNamespace(rfilename=path.name, size=self.sizes.get(path.name, path.stat().st_size))
            for path in sorted(self.folder.iterdir())
        ]
        return SimpleNamespace(sha=self.sha, siblings=files)

    def hf_hub_download(self, repo_id: str, filename: str, **options: Any) -> str:
        self.asked.append({"repo_id": repo_id, **options})
        self.fetched.append(filename)
        return str(self.folder / filename)


@pytest.fixture
def api(tmp_path: Path) -> FakeHub:
    folder = write_folder(tmp_path, CONFIG, random_weights(model_shapes(MiniMindConfig(**SIZES))))
    (folder / "consolidated.safetensors").write_bytes(b"the same weights again")
    for name in ("tokenizer.json", "tokenizer_config.json", "modeling_minimind.py", "pytorch_model.bin", "README.md"):
        (folder / name).write_text("{}")
    return FakeHub(folder)


def test_it_is_off_unless_allowed(api: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXPLORER_ALLOW_HUB", raising=False)
    assert not hub_allowed()
    with pytest.raises(CheckpointError, match="switched off here; set EXPLORER_ALLOW_HUB=1"):
        fetch(SOURCE, Limits(), api=api)
    with pytest.raises(CheckpointError, match="switched off here"):
        load(str(SOURCE))
    assert api.asked == []
    monkeypatch.setenv("EXPLORER_ALLOW_HUB", "1")
    assert hub_allowed()
    assert fetch(SOURCE, Limits(), api=api) == api.folder
    with pytest.raises(CheckpointError, match="switched off here"):
        fetch(SOURCE, Limits(), allow=False, api=api)


def test_only_config_tokenizer_and_safetensors_at_the_pinned_commit(api: FakeHub) -> None:
    fetch(SOURCE, Limits(), allow=True, api=api)
    assert sorted(api.fetched) == ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    assert api.fetched[0] == "config.json"
    assert api.fetched[-1] == "model.safetensors"
    assert all(call["token"] is False and call["revision"] == COMMIT for call in api.asked)
    assert api.asked[0]["files_metadata"] is True


def test_what_was_fetched_is_loaded(api: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "_client", lambda: api)
    loaded = load(f"hub:someone/MiniMind-3@{COMMIT}", allow_local=False, allow_hub=True)
    assert loaded.config.hidden_size == SIZES["hidden_size"]
    assert loaded.report.source == f"hub:someone/MiniMind-3@{COMMIT}"


@pytest.mark.parametrize(
    "text",
    [
        "someone/MiniMind-3",
        "someone/MiniMind-3@main",
        f"someone/MiniMind-3@{COMMIT[:-1]}",
        f"someone/MiniMind-3@{COMMIT.upper()}",
        f"MiniMind-3@{COMMIT}",
        f"/etc/passwd@{COMMIT}",
        f"../secret@{COMMIT}",
        f"a/../b@{COMMIT}",
        f"a..b/c@{COMMIT}",
        f".a/b@{COMMIT}",
        f"a/b/c@{COMMIT}",
        f"a/b\n@{COMMIT}",
        f"a/{'b' * 200}@{COMMIT}",
        f"file://a/b@{COMMIT}",
        "",
    ],
)
def test_what_is_not_a_pinned_id_is_refused(text: str) -> None:
    with pytest.raises(CheckpointError, match="is not a pinned Hub model; write hub:owner/name@commit"):
        HubSource.parse(f"hub:{text}")


def test_a_visitor_can_name_no_local_file(tmp_path: Path) -> None:
    for source in (str(tmp_path), "/etc", ".", "someone/MiniMind-3"):
        with pytest.raises(CheckpointError, match="only published models can be given here"):
            load(source, allow_local=False, allow_hub=True)


def test_sizes_are_checked_before_anything_is_fetched(api: FakeHub) -> None:
    api.sizes["model.safetensors"] = 10**12
    with pytest.raises(CheckpointError, match=r"the weights of hub:\S+ take 931.3 GiB, but the limit"):
        fetch(SOURCE, Limits(), allow=True, api=api)
    api.sizes["model.safetensors"] = None
    with pytest.raises(CheckpointError, match=r"model.safetensors has no known size"):
        fetch(SOURCE, Limits(), allow=True, api=api)
    api.sizes = {"tokenizer.json": 10**9}
    with pytest.raises(CheckpointError, match=r"tokenizer.json has no known size, or one far beyond its kind"):
        fetch(SOURCE, Limits(), allow=True, api=api)
    assert api.fetched == []


def test_another_commit_than_asked_for(api: FakeHub) -> None:
    api.sha = "f" * 40
    with pytest.raises(CheckpointError, match="answered with commit ffff"):
        fetch(SOURCE, Limits(), allow=True, api=api)


def test_a_file_that_came_short(api: FakeHub) -> None:
    api.sizes["model.safetensors"] = 12
    with pytest.raises(CheckpointError, match=r"bytes instead of 12; download it again"):
        fetch(SOURCE, Limits(), allow=True, api=api)


def test_a_model_without_safetensors(api: FakeHub) -> None:
    for path in api.folder.glob("*.safetensors"):
        path.unlink()
    with pytest.raises(CheckpointError, match=r"no config\.json with \.safetensors weights beside it"):
        fetch(SOURCE, Limits(), allow=True, api=api)


def test_a_hub_that_does_not_answer(api: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("no route to host\nand much more")

    monkeypatch.setattr(api, "hf_hub_download", fail)
    with pytest.raises(CheckpointError, match=r"config.json of .* could not be downloaded: no route to host$"):
        fetch(SOURCE, Limits(), allow=True, api=api)
    monkeypatch.setattr(api, "model_info", fail)
    with pytest.raises(CheckpointError, match=r"the Hub did not give .*: no route to host$"):
        fetch(SOURCE, Limits(), allow=True, api=api)


def test_the_real_client_has_both_calls() -> None:
    client = hub._client()
    assert callable(client.model_info)
    assert callable(client.hf_hub_download)


def test_importing_costs_neither_transformers_nor_the_hub_client() -> None:
    program = (
        "import sys, explorer.checkpoints as c\n"
        "print([m for m in ('transformers', 'huggingface_hub', 'safetensors') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
