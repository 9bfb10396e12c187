"""Fills slots with values for timed calls: ordinary draws, each evaluated natively."""

import torch

from assay_host import draws, wire


class Fills:
    """`reference`: the loaded one."""

    def __init__(self, reference):
        self._reference = reference

    def handlers(self):
        return {wire.FILL: self._fill}

    def _fill(self, args, _fd):
        seed, first, count, with_signs = args[:4]
        seeds = [(seed + index) & (2**63 - 1) for index in range(count)]
        suspects = []  # on a device: looking at each one would wait for it
        for slot, own in enumerate(seeds, first):
            kind = draws.SIGNS if with_signs and own & 1 else draws.ORDINARY
            suspects += self._filled(slot, own, kind)
        self._reference.finish()
        if suspects and bool(torch.stack(suspects).any()):
            for slot, own in enumerate(seeds, first):
                self._settle_nan(slot, own)
        return ()

    def _filled(self, slot, seed, kind):
        """Returns what may be NaN, as NanOutputs.suspects()."""
        self._reference.draw_into(slot, seed, kind)
        return self._reference.nan.suspects(self._reference.evaluate_natively(slot))

    def _settle_nan(self, slot, seed):
        """Draws a slot of random signs again with the signs of get_inputs(), where those give NaN.
        Refuses a reference that gives NaN on its own values.
        """
        reference = self._reference
        outputs = reference.slots().outputs(slot)
        if reference.kind_of(slot) == draws.SIGNS and any(reference.nan.suspects(outputs)):
            self._filled(slot, seed, draws.ORDINARY)
        names = [spec.name.decode() for spec in reference.slots().output_specs]
        reference.nan.refuse(outputs, names, lambda: reference.in_float64(slot))
