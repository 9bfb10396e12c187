"""Room for results that stay where forward put them, on a device: in memory that the judge has lent
this process, and can read itself. PyTorch's allocator is as it ever is; its segments come from
there (host/python/device_results.cc).
"""

import ctypes

import torch

# What is smaller comes from segments of its own (CUDACachingAllocator.cpp).
_SMALL_BYTES = 1 << 20


def gaps(snapshot, stream):
    """Sizes of the pieces that a snapshot of the allocator has free for that stream, the smallest
    first [bytes]: of these a result could lie in memory from before, which the judge cannot read.
    """
    sizes = []
    for segment in snapshot:
        if segment.get("stream", stream) != stream:
            continue
        if tuple(segment.get("segment_pool_id", (0, 0))) != (0, 0):
            continue  # a graph's own
        is_small = segment["segment_type"] == "small"
        for block in segment["blocks"]:
            if block["state"] != "inactive":
                continue
            size = block["size"]
            while is_small and size > _SMALL_BYTES:
                sizes.append(_SMALL_BYTES)
                size -= _SMALL_BYTES
            # Large segments serve nothing so small.
            if is_small or size > _SMALL_BYTES:
                sizes.append(size)
    return sorted(sizes)


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
        if self._plugs is None:
            self._serve(outputs[0])
        held = [[torch.empty_like(target) for target in targets] for targets in outputs]
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
