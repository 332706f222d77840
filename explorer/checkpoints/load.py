"""Open a checkpoint, compare it with its configuration, and load the model or one block of it.

Everything is decided from configurations and headers; only then is a model built and filled. So a checkpoint that does
not fit costs no memory and leaves nothing behind. Must not know file formats or how a model is filled.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from explorer.checkpoints.checkpoint import Checkpoint
from explorer.checkpoints.configs import Reading, read_config
from explorer.checkpoints.folder import Found, find
from explorer.checkpoints.hub import PREFIX, HubSource, fetch
from explorer.checkpoints.limits import Limits
from explorer.checkpoints.names import Names, Plan, make_plan, minimind_names
from explorer.checkpoints.report import CheckpointError, Report, human_count
from explorer.checkpoints.shapes import EMBEDDING, HEAD, block_shapes, check_names, check_size, count_parameters
from explorer.checkpoints.stored import FLOATS
from explorer.model.config import MiniMindConfig

Given = MiniMindConfig | Mapping[str, Any] | None


class Loaded(NamedTuple):
    """What `load` returns: a MiniMindForCausalLM, or a MiniMindBlock where a layer was asked for."""

    model: nn.Module
    config: MiniMindConfig
    report: Report


def open_checkpoint(
    source: str | Path,
    *,
    config: Given = None,
    limits: Limits | None = None,
    allow_local: bool = True,
    allow_hub: bool | None = None,
) -> Checkpoint:
    """Open a checkpoint and make sure that every weight fits, without reading a number of it.

    source: a folder with config.json and weights; a .safetensors or .pth file, with or without a config.json beside it;
    or "hub:owner/name@commit". config: a whole MiniMindConfig, which is then the configuration, or some of its fields,
    which win over the file's. allow_local=False: for sources that a visitor typed. allow_hub: None leaves it to the
    environment (EXPLORER_ALLOW_HUB=1).

    Raises CheckpointError, its `report` set where the weights could be compared.
    """
    found = _locate(source, limits or Limits(), allow_local, allow_hub)
    return _compare(str(source), found, config, limits or Limits())


def load(
    source: str | Path,
    *,
    layer: int | None = None,
    config: Given = None,
    dtype: torch.dtype = torch.float32,
    limits: Limits | None = None,
    allow_local: bool = True,
    allow_hub: bool | None = None,
) -> Loaded:
    """Load a whole model, or with `layer` one block alone; arguments as for `open_checkpoint`.

    The embeddings, and the input that a block gets from a text, are `open_checkpoint(source).embedding()` and
    `.hidden_states(input_ids, layer)`. Raises CheckpointError before anything is built.
    """
    if dtype not in FLOATS.values():
        raise CheckpointError(f"dtype {dtype} was asked for; allowed are {', '.join(map(str, FLOATS.values()))}")
    found = _locate(source, limits or Limits(), allow_local, allow_hub)
    build = (dtype.itemsize, layer is not None)
    checkpoint = _compare(str(source), found, config, limits or Limits(), build)
    model = checkpoint.model(dtype) if layer is None else checkpoint.block(layer, dtype)
    return Loaded(model, checkpoint.config, checkpoint.current_report())


def check_report(
    source: str | Path, *, config: Given = None, limits: Limits | None = None, allow_hub: bool | None = None
) -> str:
    """The comparison of a checkpoint with its configuration, and the configuration in a few lines; nothing is loaded.

    Raises CheckpointError where it could not be loaded; its message is then the report, as far as reading came.
    """
    found = _locate(source, limits or Limits(), allow_local=True, allow_hub=allow_hub)
    checkpoint = _compare(str(source), found, config, limits or Limits(), build=(torch.float32.itemsize, False))
    return f"{checkpoint.report.text()}\n{summary(checkpoint.config)}"


def summary(config: MiniMindConfig) -> str:
    """The configuration in a few lines, with the letters of the shape ledger."""
    feed_forward = f"F={config.intermediate_size}"
    if config.use_moe:
        renormalised = "renormalised" if config.norm_topk_prob else "as they are"
        feed_forward = (
            f"F={config.moe_intermediate_size}, E={config.num_experts} experts, "
            f"k={config.num_experts_per_tok} a token, weights {renormalised}"
        )
    yarn = f", YaRN ×{config.yarn.factor:g}" if config.yarn else ""
    switches = [f"qk_norm {'on' if config.qk_norm else 'off'}"]
    switches.append(f"head {'tied to the embedding' if config.tie_word_embeddings else 'of its own'}")
    return "\n".join(
        (
            f"Stream       D={config.hidden_size}, L={config.num_hidden_layers} blocks, V={config.vocab_size}",
            f"Attention    H={config.num_attention_heads}, Hkv={config.num_key_value_heads}, Dh={config.head_dim}",
            f"Feed-forward {feed_forward}",
            f"Positions    up to {config.max_position_embeddings}, rope_theta={config.rope_theta:g}{yarn}",
            f"Norms        eps={config.rms_norm_eps:g}, {', '.join(switches)}",
            f"One block    {human_count(sum(_product(shape) for shape in block_shapes(config).values()))} parameters",
        )
    )


def _compare(
    source: str, found: Found, given: Given, limits: Limits, build: tuple[int, bool] | None = None
) -> Checkpoint:
    """Read the configuration, lay stored and wanted weights side by side; CheckpointError unless they match.

    build: bytes a number and whether one block alone is to be built; its size is then held against the limits first.
    """
    weights = found.weights
    names = minimind_names(weights.stored)
    shapes = {name: weights.stored[original].shape for name, original in names.stored.items()}
    tied = _is_tied(found, names)
    if isinstance(given, MiniMindConfig):
        reading = Reading(given, "early MiniMind" if names.early else "MiniMind's names", ())
    else:
        reading = read_config(found.config, given or {}, shapes, names.early, tied is not False)
    config = reading.config
    if build is not None:
        check_size(config, build[0], limits, only_block=build[1])
    check_names(config, limits)
    plan = make_plan(names, weights.stored, config)
    report = _report(source, found, names, plan, reading)
    if not report.ok:
        raise CheckpointError(report.text(), report)
    if config.tie_word_embeddings and tied is False:
        raise CheckpointError(
            f"the configuration ties the head to the embedding, but {names.stored[HEAD]} and {names.stored[EMBEDDING]} "
            'differ; write "tie_word_embeddings": false into the config.json if they are meant to',
            report,
        )
    return Checkpoint(found.folder, config, report, weights, plan.parts, limits)


def _report(source: str, found: Found, names: Names, plan: Plan, reading: Reading) -> Report:
    weights, notes = found.weights, reading.notes
    if names.buffers:
        notes = (*notes, f"{len(names.buffers)} stored tables or masks were left out; they are computed again.")
    stored = weights.stored.values()
    fused = any(name.endswith("experts.down_proj") for name in names.stored)
    return Report(
        source=source,
        layout=reading.kind + (", fused experts" if fused else ""),
        files=weights.files,
        parameters=count_parameters(reading.config),
        stored_bytes=sum(entry.size for entry in stored),
        dtypes=tuple(sorted({entry.dtype for entry in stored})),
        missing=plan.missing,
        unexpected=plan.unexpected,
        misshaped=plan.misshaped,
        unreadable=tuple(
            f"{name}: stored as {weights.stored[name].dtype}; allowed are {', '.join(FLOATS)}"
            for name in dict.fromkeys(part.stored for part in plan.parts.values())
            if weights.stored[name].dtype not in FLOATS
        ),
        notes=notes,
    )


def _locate(source: str | Path, limits: Limits, allow_local: bool, allow_hub: bool | None) -> Found:
    if isinstance(source, str) and source.startswith(PREFIX):
        return find(fetch(HubSource.parse(source), limits, allow=allow_hub), limits)
    if not allow_local:
        raise CheckpointError("only published models can be given here; write hub:owner/name@commit")
    path = Path(source)
    try:
        return find(path, limits)
    except (OSError, ValueError) as problem:
        if isinstance(problem, CheckpointError):
            raise
        raise CheckpointError(f"{str(source)[:200]!r} cannot be opened: {problem}") from problem


def _is_tied(found: Found, names: Names) -> bool | None:
    """Whether head and embedding are the same numbers; None where only one of the two is stored."""
    if HEAD not in names.stored or EMBEDDING not in names.stored:
        return None
    return found.weights.equal(names.stored[HEAD], names.stored[EMBEDDING])


def _product(shape: tuple[int, ...]) -> int:
    count = 1
    for length in shape:
        count *= length
    return count
