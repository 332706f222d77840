"""How long each axis of a run is, read off what its taps showed.

Must not know: figures, the page.
"""

from __future__ import annotations

from collections.abc import Mapping

from explorer.capture.kept import Kept
from explorer.capture.ledger import ShapeMismatch, check_axes
from explorer.quantities import QUANTITIES

REQUIRED = {"resid_pre": "BTD", "q": ("H", "Dh"), "k": ("Hkv",)}
# An axis that a run may lack: every quantity that has it can tell its length.
OTHERS = {letter: [name for name, q in QUANTITIES.items() if letter in q.axes] for letter in "PFEk"}


def sizes_of(values: Mapping[str, Kept]) -> dict[str, int]:
    """Axis letter -> length; 0 for the length of P, E, k or F where no quantity has that axis. Raises ShapeMismatch."""
    sizes: dict[str, int] = {}
    for name, letters in REQUIRED.items():
        if name not in values:
            raise ShapeMismatch(
                f"The block's tap {name!r} never fired, so its sizes are not known. A block needs resid_pre, q and k."
            )
        sizes |= {letter: _length(values, name, letter) for letter in letters}
    for letter, names in OTHERS.items():
        sizes[letter] = next((_length(values, name, letter) for name in names if name in values), 0)
    sizes |= {"Tq": sizes["T"], "Tk": sizes["P"] + sizes["T"]}
    return sizes | {"C": sizes["H"] * sizes["Dh"], "Ckv": sizes["Hkv"] * sizes["Dh"]}


def _length(values: Mapping[str, Kept], name: str, letter: str) -> int:
    shape = tuple(values[name].tensor.shape)
    check_axes(name, shape)
    return shape[QUANTITIES[name].axes.index(letter)]
