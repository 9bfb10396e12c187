"""The host's half of the timed blocks (src/wire/block_loop.h), shared by reference and candidate.
"""

import ctypes
import functools
import gc
import operator
import time

import torch

from assay_host import device, device_results, failure, graph, inplace, structure, wire

# Taken before foreign code is imported: what it puts in their place afterwards is not used here.
_address = torch.Tensor.data_ptr
_copy = torch.Tensor.copy_
_is_contiguous = torch.Tensor.is_contiguous
_contiguous = torch.Tensor.contiguous
_is_negated = torch.Tensor.is_neg
_resolved = torch.Tensor.resolve_neg
_dtype = operator.attrgetter("dtype")
_shape = operator.attrgetter("shape")
_device = operator.attrgetter("device")
_view = torch.Tensor.view
_fill = torch.Tensor.fill_
_wait = device.wait

OutputMismatch = structure.OutputMismatch

# What an output that does not count is filled with; NaN where it is a float.
_POISON = 0xFF

# Objects that may pile up before cycles are collected, between being armed and being ready.
_GARBAGE_MAX = 5000
_COPIED_ELEMENTS_MAX = 1 << 26

# Memory for tensors of the outputs' sizes while results stay where forward put them: of all slots'
# outputs so many times the size, for what forward makes on its way, and so much besides. What is
# not used takes none.
_SERVED_FACTOR, _SERVED_BYTES = 4, 1 << 30


class FirstFailure:
    """Keeps the first failure of a loop of blocks. The judge sees the poison that remains, and
    reads this text.
    """

    def __init__(self, path, forward_number, output_number, say):
        self.count = 0
        self.number = 0
        self._path = path
        self._forward_number = forward_number
        self._output_number = output_number
        self._say = say

    def note(self, error):
        self.count += 1
        if self.count > 1:
            return
        if isinstance(error, OutputMismatch):
            self.number = self._output_number
            self._say(str(error), self.number)
        else:
            found = failure.because(self._forward_number, error, self._path, "forward fails: ")
            self.number = found.number
            self._say(found.message, found.number)


class _AnyFailure:
    """Raises the failure of a call in a capture: it must not be captured."""

    @staticmethod
    def note(error):
        raise error


def _bytes(tensor):
    return tensor.numel() * tensor.element_size()


def _text(shape, dtype):
    return f"{str(dtype).replace('torch.', '')}[{', '.join(map(str, shape))}]"


def _poison(tensors):
    for tensor in tensors:
        _fill(_view(_view(tensor, -1), torch.uint8), _POISON)


def _refuse_slot(targets):
    """Refuses a result that lies in a slot already: foreign code found the slot and saves the copy
    that the reference pays for. Poisons the slot; raises OutputMismatch.
    """
    _poison(targets)
    raise OutputMismatch("forward returns memory of the judge's that it was never given")


class _Checks:
    """Checks results against the outputs of all slots. `same`: the input's number by the number of
    a result that is an input which forward changes (inplace.py).
    """

    def __init__(self, slots, same):
        self.names = [spec.name.decode() for spec in slots.result_specs]
        self._form = slots.form
        self.targets = [slots.results(slot) for slot in range(slots.count)]
        self.region = slots.outputs_region()
        self.same = same
        self._inputs = [spec.name.decode() for spec in slots.input_specs]
        self.changed = [slots.changed_inputs(slot) for slot in range(slots.count)]
        self._ranges = [
            [range(_address(tensor), _address(tensor) + _bytes(tensor)) for tensor in one.values()]
            for one in self.changed
        ]

    def refuse(self, result, slot):
        """Refuses a result that lies in a slot already, unless in an input that the call was given
        to change. Raises OutputMismatch.
        """
        if not any(_address(result) in given for given in self._ranges[slot]):
            _refuse_slot(self.targets[slot])

    def spoil(self, slot):
        """Poisons the inputs that a call of this slot changed in part before it failed."""
        _poison(self.changed[slot].values())

    def checked(self, result, slot):
        """Returns a result's tensors, checked against a slot's outputs. Raises OutputMismatch."""
        if not self.names and not self.same:
            return []  # the reference returns nothing, so nobody looks at it
        try:
            tensors = structure.flatten_outputs(result, [], self._form)
        except TypeError as error:
            raise OutputMismatch(f"forward returns {error}; tensors are expected") from error
        targets = self.targets[slot]
        expected = len(targets) + len(self.same)
        if len(tensors) != expected:
            outputs = failure.counted(len(tensors), "output")
            raise OutputMismatch(f"forward returns {outputs}; the problem has {expected}")
        if self.same:
            tensors = self._without_changed(tensors, slot)
        for tensor, target, name in zip(tensors, targets, self.names):
            if tensor.shape != target.shape or tensor.dtype != target.dtype:
                raise OutputMismatch(
                    f"output {name} is {_text(tensor.shape, tensor.dtype)}; the problem has "
                    f"{_text(target.shape, target.dtype)}"
                )
            # A number among the results has become a tensor on the CPU.
            if tensor.device != target.device and tensor.dim() > 0:
                raise OutputMismatch(
                    f"output {name} is on {tensor.device}; the inputs are on {target.device}"
                )
        return tensors

    def _without_changed(self, tensors, slot):
        for number, leaf in self.same.items():
            if not inplace.is_same(tensors[number], self.changed[slot][leaf]):
                raise OutputMismatch(
                    f"result {number + 1} is not the input {self._inputs[leaf]}, which the "
                    "reference changes in place and returns: do the same"
                )
        return [tensor for number, tensor in enumerate(tensors) if number not in self.same]

    def store(self, result, slot):
        """Copies a result into a slot's outputs. Raises OutputMismatch."""
        tensors = self.checked(result, slot)
        for tensor in tensors:
            if tensor.numel() and _address(tensor) in self.region:
                self.refuse(tensor, slot)
        for tensor, target in zip(tensors, self.targets[slot]):
            _copy(target, tensor)


def _run(order, forwards, arguments, outputs, checks, first_failure, on_device):
    """Runs the named slots in order. Returns the time spent on copying results [ns], which has no
    meaning on a device.
    """
    clock = time.perf_counter_ns
    tensor_type = torch.Tensor
    alone = len(checks.names) == 1 and not checks.same
    settle_ns = 0
    result = None
    for slot in order:
        try:
            result = forwards[slot](*arguments[slot])
            start_ns = clock()
            if alone and type(result) is tensor_type:
                if not _is_contiguous(result):
                    # Whoever writes into slots has to lay its elements out, too.
                    result = _contiguous(result)
                    start_ns = clock()
                targets = outputs[slot]
                target = targets[0]
                if (
                    result.shape != target.shape
                    or result.dtype is not target.dtype
                    or (on_device and result.device != target.device)
                ):
                    # Raises with the reason, but for a number from the CPU.
                    checks.store(result, slot)
                if _address(result) in checks.region:
                    checks.refuse(result, slot)
                _copy(target, result)
            else:
                checks.store(result, slot)
            settle_ns += clock() - start_ns
        except BaseException as error:  # foreign code may raise anything, SystemExit included
            first_failure.note(error)
            checks.spoil(slot)
        result = None  # freed here, as a caller that drops its result would
    return settle_ns


def _run_keeping(order, forwards, arguments, kept, first_failure):
    """Runs the named slots in order. Results go to `kept`, each in its own memory."""
    for slot in order:
        try:
            kept.append(forwards[slot](*arguments[slot]))
        except BaseException as error:
            first_failure.note(error)


class _Left:
    """Leaves results where forward put them until the next block, and their addresses in the
    report. The judge reads them once this process is stopped; on a device they lie in `room`,
    memory of the judge's. So no side pays for a copy, or can save one. The work around a call is
    minimal, as a candidate that replaces this loop with its own saves it.
    """

    def __init__(self, library, report, checks, room):
        self._library = library
        self._checks = checks
        self._outputs = checks.targets
        self._room = room
        names, same = checks.names, checks.same
        self._alone = len(names) == 1 and len(self._outputs) > 0 and not same
        # In each slot the one input that forward changes and returns, if it does.
        self._expected = None
        if not names and set(same) == {0}:
            self._expected = [changed[same[0]] for changed in checks.changed]
        self._nothing = not names and not same
        if self._alone:
            target = self._outputs[0][0]
            self._dtypes, self._shapes = {target.dtype}, {target.shape}
            self._devices = {target.device}
        self.addresses = (ctypes.c_uint64 * wire.RESULTS_MAX).from_address(
            report + wire.Report.result_at.offset
        )
        self._kept = []
        self._is_served = False

    def get_ready(self):
        """Before a block: drops the results of the previous block."""
        self._kept = [None] * len(self._outputs)
        if self._is_served or not self._outputs:
            return
        # Calls of every block find memory there that the block before gave back.
        self._is_served = True
        if self._room is not None:
            self._room.get_ready(self._outputs)
        else:
            sizes = {_bytes(target) for target in self._outputs[0]}
            self._library.serve_results(
                _SERVED_FACTOR * len(self._checks.region) + _SERVED_BYTES,
                (ctypes.c_uint64 * len(sizes))(*sizes),
                len(sizes),
            )

    def drop(self):
        """Drops the results, before a block whose results go elsewhere."""
        self._kept = []

    def run(self, order, forwards, arguments, first_failure):
        """Runs the named slots in order, and writes the addresses of their results: one for each
        slot, in the order of first use.
        """
        kept = self._kept
        calls = iter(order)
        slot = -1
        while True:
            try:
                for slot in calls:
                    kept[slot] = forwards[slot](*arguments[slot])
                break
            except BaseException as error:  # foreign code may raise anything, SystemExit included
                kept[slot] = None
                first_failure.note(error)
                self._checks.spoil(slot)
        named = order[: len(kept)]
        results = list(map(kept.__getitem__, named))
        try:
            regular = self._are_as_expected(named, results) or self._are_regular(results)
            if regular and self._alone:
                self.addresses[: len(results)] = list(map(_address, results))
        except BaseException:  # a tensor whose memory is gone says so when it is asked for it
            regular = False
        if not regular:
            self._leave_each(named, first_failure)

    def _are_as_expected(self, named, results):
        """Returns True if no call has a result of its own."""
        if self._expected is None:
            return self._nothing
        return all(map(operator.is_, results, map(self._expected.__getitem__, named)))

    def _are_regular(self, results):
        """Returns True if all are plain tensors with the layout of a slot's output."""
        return (
            self._alone
            and set(map(type, results)) == {torch.Tensor}
            and set(map(_dtype, results)) == self._dtypes
            and all(map(_is_contiguous, results))
            and not any(map(_is_negated, results))
            and set(map(_shape, results)) == self._shapes
            and (self._room is None or set(map(_device, results)) == self._devices)
        )

    def _leave_each(self, named, first_failure):
        width = len(self._checks.names)
        for place, slot in enumerate(named):
            addresses = [0] * width
            try:
                if self._kept[slot] is not None:
                    self._kept[slot] = self._laid_out(self._kept[slot], slot)
                    addresses = list(map(_address, self._kept[slot]))
            except BaseException as error:
                self._kept[slot] = None
                first_failure.note(error)
                self._checks.spoil(slot)
            self.addresses[place * width : (place + 1) * width] = addresses

    def _laid_out(self, result, slot):
        """Returns a result's tensors, each with the layout of a slot's output. Raises
        OutputMismatch.
        """
        tensors = []
        for tensor, target in zip(self._checks.checked(result, slot), self._outputs[slot]):
            # A subclass may compute when it is looked at, and a number is on the CPU.
            if type(tensor) is not torch.Tensor or tensor.device != target.device:
                tensor = _copy(torch.empty_like(target), tensor)
            if _is_negated(tensor):
                tensor = _resolved(tensor)
            tensors.append(tensor if _is_contiguous(tensor) else _contiguous(tensor))
        return tensors


class _OnDevice:
    """Does the additional work of blocks on a device. Measures copying apart: work is queued there,
    so a clock around a call does not show it.
    """

    def __init__(self, library, loop, slots):
        self._control = wire.Control.from_address(loop.control)
        self._report = wire.Report.from_address(loop.report)
        self._loop = loop
        self._library = library
        # Numbers are read before their values are there, and a first call would change inputs.
        may_change = slots.count > 0 and bool(slots.changed_inputs(0))
        self._may_capture = slots.numbers() is None and not may_change
        self._graph = graph.BlockGraph(library)
        self._slots = slots
        self._kept = []
        self._reserved = False
        self._profiles = self._traces = False
        self.wait = functools.partial(_wait, library, loop)
        self._spark = torch.empty(0)
        self._settling_ns = 0
        if slots.count > 0:
            self._spark = torch.zeros(1024, device=slots.outputs(0)[0].device)
            self._settling_ns = sum(self._copying_ns(target) for target in slots.results(0))

    def _copying_ns(self, target):
        """Returns the time of a copy into a slot, by that of its first part [ns]."""
        part = target.view(-1)[:_COPIED_ELEMENTS_MAX]
        result = torch.empty_like(part)
        cost_ns = device.cost_ns(lambda: _copy(part, result), self.wait)
        return cost_ns * target.numel() // max(1, part.numel())

    def get_ready(self, run):
        """Prepares a block. Returns (list for its results, or None: they go into the slots; True if
        the block is a graph, to be launched). run(order, kept, failures) runs calls.
        """
        self._kept.clear()
        keeps = self._control.results == wire.KEPT
        if keeps and not self._reserved:
            # As much memory as the results of all slots take stays with the allocator.
            reserved = [
                [torch.empty_like(target) for target in self._slots.results(slot)]
                for slot in range(self._slots.count)
            ]
            del reserved
            self._reserved = True
        kept = self._kept if keeps else None
        replays = self._control.replay != 0 and self._capture(run, kept)
        if self._control.replay == 0:
            self._graph.release()
        self._report.replays = self._loop.sequence if replays else 0
        # What was queued before go would run inside of the clock; and the device has to turn to
        # this process, which lasts as long as several short calls.
        _fill(self._spark, 0)
        self.wait()
        self._profiles = self._control.profile != 0
        if self._profiles:
            device.end_by_error(self._library, self._loop, self._library.start_profiler())
        self._traces = self._control.trace != 0
        if self._traces:
            self._library.start_trace()
        return kept, replays

    def _capture(self, run, kept):
        order = self._control.order[: min(self._control.call_count, wire.CALLS_MAX)]
        if not self._may_capture or not order:
            return False
        return self._graph.capture(
            lambda: run(order, kept, _AnyFailure), lambda: run(order[:1], None, _AnyFailure)
        )

    def launch(self):
        device.end_by_error(self._library, self._loop, self._graph.launch())

    def finish(self):
        """Waits for the work of a block's calls."""
        self.wait()
        if self._profiles:
            device.end_by_error(self._library, self._loop, self._library.stop_profiler())
        if self._traces:
            self._library.stop_trace()

    def settle_ns(self, calls, copies):
        return calls * self._settling_ns if copies else 0


def run_blocks(library, loop, slots, forwards, same, restore, first_failure):
    """Serves timed blocks until the judge ends the loop. A block on a device ends once the device
    has done its work. `forwards`: the function to call in each slot. `same`: as in _Checks.
    """
    slots.prefault(library)
    checks = _Checks(slots, same)
    arguments = [tuple(slots.given(slot)) for slot in range(slots.count)]
    numbers = slots.numbers()
    loop_pointer = ctypes.byref(loop)
    on_device = None
    if slots.on_device:
        on_device = _OnDevice(library, loop, slots)
    control = wire.Control.from_address(loop.control)
    room = device_results.room(library, slots.results_region())
    left = _Left(library, loop.report, checks, room)
    kept, replays = None, False

    def run(order, kept, failures):
        if kept is not None:
            _run_keeping(order, forwards, arguments, kept, failures)
            return 0
        there = on_device is not None
        given = arguments
        if control.inputs_of != 0:
            given = [arguments[control.inputs_of - 1]] * slots.count
        return _run(order, forwards, given, checks.targets, checks, failures, there)

    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        while library.await_armed(loop_pointer):
            # Tensors are views of the slots, but numbers were read out of them, and the judge has
            # filled them again.
            if numbers is not None:
                for slot in numbers.changed_slots():
                    arguments[slot] = tuple(slots.given(slot))
            restore()
            leaves = control.results == wire.LEFT
            if leaves:
                try:
                    left.get_ready()
                except BaseException as error:  # no memory is left
                    first_failure.note(error)
            else:
                left.drop()
            if on_device:
                kept, replays = on_device.get_ready(run)
            if gc.get_count()[0] > _GARBAGE_MAX:
                gc.collect()
            library.await_go(loop_pointer)
            if replays:
                on_device.launch()
            elif leaves:
                left.run(loop.order[: loop.call_count], forwards, arguments, first_failure)
                settle_ns = 0
            else:
                settle_ns = run(loop.order[: loop.call_count], kept, first_failure)
            if on_device:
                on_device.finish()
                copies = kept is None and not leaves
                settle_ns = on_device.settle_ns(loop.call_count, copies)
            library.say_done(loop_pointer, settle_ns)
    finally:
        gc.enable()
        gc.unfreeze()
