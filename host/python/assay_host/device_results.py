"""Room on a device for results that stay where forward put them: memory that the judge lends this
process, and can read itself. PyTorch's allocator is unchanged, but its segments come from there
(host/python/device_results.cc).
"""

import ctypes

import torch

# What is no larger comes from segments of its own (CUDACachingAllocator.cpp).
_SMALL_BYTES = 1 << 20
# Of the room in the region, that for what forward makes on its way (src/values/left_results.cc):
# results in slots, and their bytes at most, less what rounding takes.
_SLOTS_BESIDES, _BYTES_BESIDES = 8, 15 << 26
# What is no smaller is taken in whole units of so many bytes.
_LARGE_BYTES, _UNIT_BYTES = 10 << 20, 2 << 20
# Pieces of the region, of the same size as a gap elsewhere, that may come before it.
_LENT_BEFORE_A_GAP = 64


def gaps(snapshot, stream):
    """Returns sizes to allocate, in this order, so that a snapshot of an allocator has nothing free
    for that stream any more [bytes]. A result in such older memory would lie where the judge cannot
    read it. The allocator takes the smallest piece that is large enough.
    """
    whole = []
    for segment in snapshot:
        if segment.get("stream", stream) != stream:
            continue
        if tuple(segment.get("segment_pool_id", (0, 0))) != (0, 0):
            continue  # a graph's own
        is_small = segment["segment_type"] == "small"
        for block in segment["blocks"]:
            # Large segments serve nothing small.
            if block["state"] == "inactive" and (is_small or block["size"] > _SMALL_BYTES):
                whole.append((block["size"], is_small))
    sizes = []
    for size, is_small in sorted(whole):
        while is_small and size > _SMALL_BYTES:
            sizes.append(_SMALL_BYTES)
            size -= _SMALL_BYTES
        sizes.append(size)
    return sizes


def plugs(sizes, allocate, is_lent):
    """Fills gaps of these sizes [bytes] and returns the pieces, which the caller keeps.
    allocate(size) returns a piece of memory; is_lent(piece): True if it lies in the region, so that
    it fills no gap and is freed at the end.
    """
    kept, lent = [], []
    for size in sizes:
        for _ in range(_LENT_BEFORE_A_GAP):
            piece = allocate(size)
            if not is_lent(piece):
                kept.append(piece)
                break
            lent.append(piece)
    return kept


def slots_besides(sizes, slots, region_bytes):
    """Returns for how many results, beyond those of `slots` slots, memory is reserved: as many as
    the region holds, which is small if the device has little memory. sizes: of one slot's results
    [bytes].
    """
    taken = sum(
        -(-size // _UNIT_BYTES) * _UNIT_BYTES if size >= _LARGE_BYTES else size for size in sizes
    )
    held = region_bytes // max(1, taken) - slots
    return max(0, min(_SLOTS_BESIDES, _BYTES_BESIDES // max(1, sum(sizes)), held))


def room(library, region):
    """Returns the Room in a region of the device's memory, the same one each time; None without a
    region.
    """
    if region is None:
        return None
    if region.room is None:
        region.room = Room(library, region)
    return region.room


class Room:
    """The region, and the plugs that keep results out of other memory."""

    def __init__(self, library, region):
        self._library = library
        self._region = region
        self._plugs = []
        self._before = None  # addresses of segments from before the region was in use

    def get_ready(self, outputs):
        """Reserves room for results of all slots; outputs: a list of tensors for each. Call again
        whenever blocks are entered anew: the host's own tensors for earlier blocks leave gaps.
        """
        if not outputs or not outputs[0]:
            return
        if self._before is None:
            self._serve(outputs[0])
        self._plug(outputs[0][0].device)
        sizes = [target.numel() * target.element_size() for target in outputs[0]]
        besides = slots_besides(sizes, len(outputs), self._region.size_bytes)
        wanted = [*outputs, *[outputs[0]] * besides]
        held = [[torch.empty_like(target) for target in targets] for targets in wanted]
        del held  # the allocator keeps it

    def _serve(self, targets):
        torch.cuda.empty_cache()
        self._before = {segment["address"] for segment in torch.cuda.memory_snapshot()}
        sizes = [target.numel() * target.element_size() for target in targets]
        self._library.serve_device_results(
            self._region.address,
            self._region.size_bytes,
            (ctypes.c_uint64 * len(sizes))(*sizes),
            len(sizes),
        )

    def _plug(self, device):
        stream = torch.cuda.current_stream().cuda_stream
        before = [s for s in torch.cuda.memory_snapshot() if s["address"] in self._before]
        begin, end = self._region.address, self._region.address + self._region.size_bytes
        self._plugs += plugs(
            gaps(before, stream),
            lambda size: torch.empty(size, dtype=torch.uint8, device=device),
            lambda piece: begin <= piece.data_ptr() < end,
        )
