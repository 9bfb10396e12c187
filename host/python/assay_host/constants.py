"""The constants of a problem's file as macros of native candidates: GROUPS = 4 is ASSAY_GROUPS."""

import json
import math
import os

_COUNT_MAX = 200
_LENGTH_MAX = 60


def macros(module, names):
    """Returns {macro: text of its value} of those of the module's names that are numbers. Of two
    names that differ in their case alone none has a macro.
    """
    found, twice = {}, set()
    for name in names:
        text = _text(getattr(module, name, None))
        macro = f"ASSAY_{name.upper()}"
        if text is None or not name.isascii() or len(name) > _LENGTH_MAX:
            continue
        if macro in found:
            twice.add(macro)
        found[macro] = text
    kept = [item for item in found.items() if item[0] not in twice]
    return dict(kept[:_COUNT_MAX])


def _text(value):
    if type(value) is bool:
        return str(int(value))
    if type(value) is int and -(2**63) < value < 2**63:
        return str(value)
    if type(value) is float and math.isfinite(value):
        return repr(value)
    return None


def write(fd, place, module, names):
    """Writes macros() behind the construction record, as JSON that a NUL ends."""
    if fd >= 0:
        os.pwrite(fd, json.dumps(macros(module, names)).encode() + b"\0", place)
