"""RunSpec and view <-> the query string of a link.

Purpose: a versioned, readable, size-limited address that any server of this program opens alike.
Must not know: torch, the page. Whatever a query string holds, decoding never raises and never exceeds the limits.

    v=1&B=2&T=5&d=12&h=3&w=random&e=probs@0.0.1.0~0.5&stage=5

Edits are `target@index~value`, joined by `!`; a leading `-` marks one that is switched off, `*` stands for every
position, an empty index for the whole tensor. Values of whole tensors travel as `z<shape>_<base64 of packed float64>`.
"""

from explorer.link.keys import COMPARE, FIELDS, KEYS, LANGUAGES, RESERVED, VERSION, LinkTooLong, View
from explorer.link.read import decode
from explorer.link.write import encode

__all__ = [
    "COMPARE", "FIELDS", "KEYS", "LANGUAGES", "RESERVED", "VERSION", "LinkTooLong", "View", "decode", "encode",
]  # fmt: skip
