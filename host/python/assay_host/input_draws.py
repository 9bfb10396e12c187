"""The inputs of a loaded problem: get_inputs() under a seed, changed by a kind of draw."""

from assay_host import describe, draws, failure, mends, own_values, sharing, signs
from assay_host.failure import Failure


class InputDraws:
    """Made anew for each problem that a host loads.

    `call(seed)`: get_inputs() under a seed, as (name, value) leaves. `place`: the Placement.
    `seed`: of draws by which the host learns what inputs are like. `rows`: what all draws must be
    like (describe.Signature).
    """

    def __init__(self, call, place, seed, rows):
        self._call = call
        self._place = place
        self._seed = seed
        self._rows = rows
        self._own_values = False
        self._fixed = []

    def learn(self, truth_of):
        """Must be called before any draw. Returns whether get_inputs() gives the same under every
        seed, and whether the judge's own values take their place. `truth_of(leaves)` yields parts
        of forward's outputs, in float64 where that works; raises Failure.
        """
        self._signs = signs.Signs(
            lambda: self.drawn(self._seed, draws.ORDINARY)[0], self._seed, truth_of
        )
        digest = own_values.digest(self._drawn_there(self._seed))
        leaves = self._drawn_there(self._seed + 1)
        other = own_values.digest(leaves)
        repeats = own_values.same(digest, other)
        self._fixed = [] if repeats else own_values.fixed(leaves, digest, other)
        self._own_values = repeats and own_values.may_change(leaves)
        return repeats, self._own_values

    def words(self):
        """Returns what a card says of inputs that no draw changes; empty: there are none."""
        if not self._fixed:
            return ""
        be, it = ("is", "it") if len(self._fixed) == 1 else ("are", "them")
        return f"{', '.join(self._fixed)} {be} the same in every draw: candidates may rely on {it}"

    def drawn(self, seed, kind):
        """Returns the (name, value) leaves of a draw, and how many tensors its kind changed."""
        if kind >= draws.KIND_COUNT and kind not in mends.KINDS:
            raise Failure(failure.ENVIRONMENT, f"unknown kind of draw {kind}")
        if kind in mends.KINDS:
            called = self._call(seed)
            leaves = sharing.keep(
                called, [(name, self._place.drawn(value)) for name, value in called]
            )
        else:
            leaves = self._drawn_there(seed)
        describe.check_same(self._rows, leaves)
        # Elements that repeat others do so in every draw.
        once = [(name, sharing.unexpanded(value)) for name, value in leaves]
        made, changed = self._changed(once, kind, seed)
        return [
            (name, sharing.expanded(value, like)) for (name, value), (_, like) in zip(made, leaves)
        ], changed

    def _changed(self, leaves, kind, seed):
        if self._own_values:
            leaves = own_values.change_all(leaves, seed)
        if kind == draws.SIGNS:
            return self._signs.change_all(leaves, seed)
        change_all = mends.change_all if kind in mends.KINDS else draws.change_all
        return change_all(leaves, kind, seed)

    def kept_signs(self):
        """Returns bits of the inputs that keep their signs because the reference needs it."""
        return sum(1 << number for number in self._signs.kept() if number < 64)

    def _drawn_there(self, seed):
        return self._place.draw(lambda: self._call(seed))
