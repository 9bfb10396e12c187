"""Tests where draws are made, and what becomes of memory that the oracle does not use."""

import contextlib
import time
import unittest
from unittest import mock

from fake_judge import failure, torch

from assay_host import device  # noqa: E402


class Placements(unittest.TestCase):
    def placement(self):
        place = device.Placement({"device": "cuda"})
        place._draws_there = True  # as with PyTorch 2
        return place

    def drawn(self, place, cause):
        """Draws by a get_inputs() that fails on the device. Returns how many calls there were."""
        calls = []

        def get_inputs():
            calls.append(1)
            if len(calls) == 1:
                raise failure.Failure(failure.PROBLEM_INPUTS, "get_inputs() fails") from cause

        with mock.patch.object(torch, "device", contextlib.nullcontext):
            place.draw(get_inputs)
        return len(calls)

    def test_a_draw_that_cannot_be_made_on_the_device_is_made_on_the_cpu(self):
        place = self.placement()
        self.assertEqual(self.drawn(place, RuntimeError("another device")), 2)
        self.assertFalse(place._draws_there)

    def test_a_draw_for_which_the_device_lacks_memory_fails(self):
        place = self.placement()
        with self.assertRaises(failure.Failure):
            self.drawn(place, torch.cuda.OutOfMemoryError("CUDA out of memory"))
        self.assertTrue(place._draws_there)

    # The driver clears what is given back, and a candidate's call that came right after was 10%
    # slower than the reference's.
    def test_memory_that_no_tensor_uses_is_given_back_if_it_is_much_and_little_is_free(self):
        much = 2**30 + 1
        rows = [(2**30, 9, 2**32, 0), (much, 9, 2**32, 1), (much, much, 2**32, 0)]
        for held_bytes, free_bytes, whole_bytes, calls in [*rows, (much, much, 2**33, 1)]:
            with mock.patch.multiple(
                torch.cuda,
                synchronize=mock.DEFAULT,
                empty_cache=mock.DEFAULT,
                memory_reserved=lambda: held_bytes + 5,
                memory_allocated=lambda: 5,
                mem_get_info=lambda: (free_bytes, whole_bytes),
            ) as patched, mock.patch.object(time, "sleep") as slept:
                self.placement().finish()
            self.assertEqual(patched["synchronize"].call_count, 1)
            self.assertEqual(patched["empty_cache"].call_count, calls)
            self.assertEqual(slept.call_count, calls)


if __name__ == "__main__":
    unittest.main()
