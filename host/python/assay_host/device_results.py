"""Room for results that stay where forward put them, on a device: in memory that the judge has lent
this process, and can read itself. PyTorch's allocator is as it ever is; its segments come from
there (host/python/device_results.cc).
"""

import ctypes

import torch

# What is no larger comes from segments of its own (CUDACachingAllocator.cpp).
_SMALL_BYTES = 1 << 20
# Of the room in the region, that for what forward makes on its way (src/pipeline/left_results.cc):
# results in slots, and their bytes at most, less what rounding takes.
_SLOTS_BESIDES, _BYTES_BESIDES = 8, 15 << 26


def gaps(snapshot, stream):
    """What to ask an allocator for, in this order, that nothing is free any more of what a snapshot
    of it has free for that stream [bytes]: in memory from before a result would lie where the judge
    cannot read it. The allocator takes the smallest piece that is large enough.
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


def room(library, region):
    """The Room in a region of the device's memory, the same one each time; None without one."""
    if region is None:
        return None
    if region.room is None:
        region.room = Room(library, region)
    return region.room


class Room:
    """The region, and what keeps results out of other memory."""

    def __init__(self, library, region):
        self._library = library
        self._region = region
        self._plugs = None

    def get_ready(self, outputs):
        """Has room at hand for results of all slots; outputs: a list of tensors for each."""
        if not outputs or not outputs[0]:
            return
        if self._plugs is None:
            self._serve(outputs[0])
        size_bytes = sum(target.numel() * target.element_size() for target in outputs[0])
        besides = min(_SLOTS_BESIDES, _BYTES_BESIDES // max(1, size_bytes))
        wanted = [*outputs, *[outputs[0]] * besides]
        held = [[torch.empty_like(target) for target in targets] for targets in wanted]
        del held  # the allocator keeps it

    def _serve(self, targets):
        torch.cuda.empty_cache()
        stream = torch.cuda.current_stream().cuda_stream
        self._plugs = [
            torch.empty(size, dtype=torch.uint8, device=targets[0].device)
            for size in gaps(torch.cuda.memory_snapshot(), stream)
        ]
        sizes = [target.numel() * target.element_size() for target in targets]
        self._library.serve_device_results(
            self._region.address,
            self._region.size_bytes,
            (ctypes.c_uint64 * len(sizes))(*sizes),
            len(sizes),
        )
