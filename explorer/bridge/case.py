"""What the checks run: the block of a spec, its own copy, on the whole text that the spec's run has behind it.

Purpose: Case, and how far two results may be apart.
Must not know: what is checked.

Weights that were edited count, for they are the model's. Edits of quantities and what-ifs stay out: they change one run
on purpose, and the checks are about what the block does by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from explorer import allowance, sources
from explorer.bridge.text import Html
from explorer.capture import Trace
from explorer.capture.edits import set_cells
from explorer.limits import LIMITS
from explorer.messages import say
from explorer.model import block as block_module
from explorer.model import rope as rope_module
from explorer.model.config import MiniMindConfig
from explorer.quantities import QUANTITIES
from explorer.run import config_of, prepare, run
from explorer.spec import RunSpec, SpecError

Cache = tuple[Tensor, Tensor]
ROUNDINGS = 4  # steps of the number type that two ways to the same result may be apart
LEAST = 1e-5  # the same for float32, where sums of many terms round more often than once
ANGLE = 2e-7  # what an angle loses a position in float32


@dataclass(frozen=True)
class Pass:
    """What one call gave: `out` [B, T, D], and the cache after it.

    out: the block's output; of a block with experts the stream before them, since a router that is undecided between
         two experts may turn on the last bit
    """

    out: Tensor
    present: Cache


@dataclass(frozen=True)
class Case:
    """spec: the run without edits of quantities; config: the model's; state: the block's weights as edited;
    stream: what the block receives for cached and new tokens together, [B, N, D]; mask [B, N], 1 real and 0 padding.
    """

    spec: RunSpec
    config: MiniMindConfig
    state: dict[str, Tensor]
    stream: Tensor
    mask: Tensor | None

    @classmethod
    def of(cls, spec: RunSpec, passes: int) -> Case:
        """passes: how many runs over the whole text a check takes. Raises SpecError where that is too much."""
        bound(spec, passes)
        spec = plain(spec)
        tokens = spec.past + spec.T
        path = "explicit" if spec.attention == "explicit" else "auto"
        ready = prepare(replace(spec, T=tokens, past=0, edits=(), attention=path))
        state = {name: value.detach() for name, value in ready.block.state_dict().items()}
        for edit in spec.edits:
            if edit.on and edit.target in state:
                state[edit.target] = set_cells(state[edit.target], edit)
        return cls(spec, model_config(spec), state, ready.hidden_states, ready.attention_mask)

    @property
    def tokens(self) -> int:
        """N, cached tokens included."""
        return int(self.stream.shape[1])

    @property
    def dtype(self) -> str:
        return self.spec.dtype

    @property
    def compared(self) -> Html:
        """The symbol of what `Pass.out` holds."""
        return Html("Y" if self.config.use_moe else "X<sub>next</sub>")

    @property
    def tolerance(self) -> float:
        """How far two ways to the same number may be apart, relative to the largest number."""
        return tolerance(self.dtype, self.tokens, self.config.angle_step)

    @cached_property
    def rope(self) -> rope_module.RotaryEmbedding:
        return rope_module.RotaryEmbedding(self.config)

    def trace(self) -> Trace:
        """The run itself, as the page shows it without edits of quantities."""
        return run(self.spec)

    def longer(self) -> Case:
        """This case, its token twice where there is only one: what needs a token before another can be looked at."""
        return self if self.tokens > 1 else replace(self, stream=self.stream.repeat(1, 2, 1), mask=None)

    def block(self, flash: bool = True) -> block_module.MiniMindBlock:
        """The block with these weights, a copy that nobody else calls; it shares their memory."""
        with torch.device("meta"):
            made = block_module.MiniMindBlock(replace(self.config, flash_attn=flash, dropout=0.0))
        made.load_state_dict(self.state, assign=True)
        return made.eval().requires_grad_(False)

    def call(
        self, block: block_module.MiniMindBlock, x: Tensor, start: int = 0, past: Cache | None = None,
        mask: Tensor | None = None,
    ) -> Pass:  # fmt: skip
        """`block` on x [B, T, D], whose first token stands at position `start`."""
        allowance.check()
        between: list[Tensor] = []
        hook = block.taps["resid_mid"].register_forward_hook(lambda module, given, out: between.append(out))
        try:
            with torch.no_grad():
                out, present = block(x, self.rope(start, x.shape[1], x.device), past, True, mask)
        finally:
            hook.remove()
        if present is None:
            raise RuntimeError("use_cache: no cache")
        return Pass(between[0] if self.config.use_moe else out, present)


def plain(spec: RunSpec) -> RunSpec:
    """The run without what-ifs and edits of quantities; edited weights stay."""
    kept = tuple(edit for edit in spec.edits if edit.on and edit.target not in QUANTITIES)
    return replace(spec, edits=kept, switches=())


def model_config(spec: RunSpec) -> MiniMindConfig:
    return sources.config_of(spec) if spec.checkpoint else config_of(spec)


def tolerance(dtype: str, tokens: int = 1, step: float = 1.0) -> float:
    return max(LEAST, ROUNDINGS * torch.finfo(getattr(torch, dtype)).eps, ANGLE * tokens * max(1.0, abs(step)))


def bound(spec: RunSpec, passes: int) -> None:
    """All passes of a check together may take as much work, and one of them as much memory, as the largest run."""
    tokens = spec.past + spec.T
    scores = 3 * 4 * spec.B * spec.h * tokens * tokens
    if spec.block_flops * passes > LIMITS.flops or scores > LIMITS.score_bytes or tokens > LIMITS.T:
        message = say(
            "This check runs the block {passes} times over {tokens} tokens, more than one visitor may ask for at once "
            "at these sizes. Choose a smaller T, past, B or d_model.",
            passes=passes, tokens=tokens,
        )  # fmt: skip
        raise SpecError({"bridge": message})


def apart(found: Tensor, wanted: Tensor) -> float:
    """The largest difference relative to the largest number that was wanted; NaN where a number is not finite."""
    a, b = found.detach().cpu().double(), wanted.detach().cpu().double()
    if a.shape != b.shape or not bool(a.isfinite().all() and b.isfinite().all()):
        return float("nan")
    if not a.numel():
        return 0.0
    return float((a - b).abs().max()) / max(float(b.abs().max()), 1e-30)


def times(shape: torch.Size | tuple[int, ...]) -> str:
    """ "2×5×12"."""
    return "×".join(map(str, shape))
