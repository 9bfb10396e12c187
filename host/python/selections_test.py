"""Tests which outputs are the indices of a selection, and the values behind them."""

import os
import tempfile
import unittest

from fake_judge import Judge, torch, wire
from sample_problems import problem
from assay_host import selections

torch.set_grad_enabled(False)

X = torch.tensor([[3.0, 1.0, 3.0, 2.0], [0.0, 5.0, 4.0, 5.0]])


class FindTest(unittest.TestCase):
    def found(self, forward):
        outputs, seen = selections.recorded(forward)
        number = selections.find(seen, outputs)
        return None if number is None else seen[number]

    def test_operators_that_select(self):
        for forward in (
            lambda: X.argmax(-1),
            lambda: X.argmin(),
            lambda: X.max(dim=1, keepdim=True)[1],
            lambda: torch.topk(X, 2)[1],
            lambda: torch.sort(X, dim=0, descending=True)[1],
            lambda: torch.argsort(X, dim=-1),
            lambda: X.kthvalue(2)[1],
            lambda: X.median(dim=0)[1],
            lambda: torch.topk(X * 2, 2)[1].to(torch.int32),
            lambda: X.argmax(-1).view(2, 1),
            lambda: torch.nn.functional.max_pool1d(X[None], 2, return_indices=True)[1],
        ):
            self.assertIsNotNone(self.found(forward))

    def test_what_has_one_right_answer_selects_nothing(self):
        self.assertIsNone(self.found(lambda: X.argmax(-1) + 1))
        self.assertIsNone(self.found(lambda: torch.sort(X, stable=True)[1]))
        self.assertIsNone(self.found(lambda: (X > 2).sum(-1)))

    def test_a_source_that_changed_since_says_nothing(self):
        def forward():
            x = X.clone()
            indices = x.argmax(-1)
            x.neg_()
            return indices

        self.assertIsNone(self.found(forward))


class CompareTest(unittest.TestCase):
    def compare(self, forward, given):
        _, seen = selections.recorded(forward)
        return selections.compare(seen[-1], None, torch.tensor(given))

    def test_values_behind_other_indices(self):
        numbers, arrays = self.compare(lambda: X.argmax(-1), [2, 3])
        self.assertEqual(numbers[3:5], (0, 0))
        self.assertEqual(arrays[0].flatten().tolist(), [3, 5])
        self.assertEqual(arrays[1].flatten().tolist(), [3, 5])
        _, arrays = self.compare(lambda: X.argmax(-1), [1, 3])
        self.assertEqual(arrays[0].flatten().tolist(), [1, 5])

    def test_indices_that_stand_for_nothing(self):
        numbers, arrays = self.compare(lambda: torch.topk(X, 2)[1], [0, 7, 3, -1])
        self.assertEqual(numbers[2:5], (1, 2, 0))
        self.assertTrue(bool(arrays[0].flatten()[1].isnan()))
        numbers, _ = self.compare(lambda: torch.topk(X, 2)[1], [0, 2, 3, 3])
        self.assertEqual(numbers[2:5], (3, 0, 1))
        numbers, _ = self.compare(lambda: torch.sort(X, dim=0)[1], [1, 0, 0, 0, 0, 1, 0, 1])
        self.assertEqual(numbers[2:5], (6, 0, 1))

    def test_the_flat_tensor(self):
        _, arrays = self.compare(lambda: X.argmax(), 7)
        self.assertEqual(arrays[0].tolist(), [5])


class PoolingTest(unittest.TestCase):
    """Windows are checked against those of PyTorch's own pooling of images with one large value."""

    CASES = (
        ("max_pool1d", 1, dict(kernel_size=3)),
        ("max_pool1d", 1, dict(kernel_size=2, stride=1, dilation=3)),
        ("max_pool2d", 2, dict(kernel_size=(3, 2), stride=(2, 1), padding=(1, 0))),
        ("max_pool2d", 2, dict(kernel_size=2, ceil_mode=True)),
        ("max_pool3d", 3, dict(kernel_size=2, stride=2, padding=1)),
        ("adaptive_max_pool1d", 1, dict(output_size=4)),
        ("adaptive_max_pool2d", 2, dict(output_size=(3, 4))),
        ("adaptive_max_pool3d", 3, dict(output_size=2)),
    )

    def pooled(self, name, images, options):
        pool = getattr(torch.nn.functional, name)
        _, seen = selections.recorded(lambda: pool(images, return_indices=True, **options)[1])
        return seen[-1]

    def test_every_index_of_a_window_is_right_and_no_other(self):
        for name, axes, options in self.CASES:
            shape = [2, 3, 7][-axes:] if axes == 3 else [5, 7][-axes:]
            count = torch.Size(shape).numel()
            # Image i is largest at element i, so its index tells which windows hold element i.
            images = torch.eye(count).view(count, 1, *shape)
            selection = self.pooled(name, images, options)
            outputs = selection.indices[0].numel()
            for element in range(count):
                given = torch.full((count, 1, outputs), element)
                chosen = selection.shaped(selection.indices)[element] == element
                outside = selection.outside(given)[element]
                self.assertTrue(torch.equal(~outside, chosen), (name, options, element))

    def test_equal_values_of_overlapping_windows_may_be_chosen_anywhere_in_them(self):
        x = torch.tensor([[[1.0, 2.0, 2.0, 0.0, 2.0]]])
        selection = self.pooled("max_pool1d", x, dict(kernel_size=3, stride=1))
        for given, outside in (([1, 1, 2], 0), ([2, 2, 4], 0), ([1, 4, 9], 2), ([4, 2, -1], 2)):
            numbers, arrays = selections.compare(selection, None, torch.tensor([[given]]))
            self.assertEqual(numbers[3:], (outside, 0, 0, 1), given)
            if not outside:
                self.assertEqual(arrays[0].flatten().tolist(), [2, 2, 2])
        numbers, arrays = selections.compare(selection, None, torch.tensor([[[0, 2, 4]]]))
        self.assertEqual(numbers[3], 0)
        self.assertEqual(arrays[0].flatten().tolist(), [1, 2, 2])


class RequestTest(unittest.TestCase):
    def test_a_request(self):
        judge = Judge()
        self.addCleanup(judge.close)
        judge.load(problem("return torch.topk(x, 2, dim=-1)"))
        judge.lay_out(2)
        judge.draw(0)
        judge.evaluate()
        best, indices = judge.tensor("out"), judge.tensor("out1")
        with tempfile.TemporaryFile() as file:
            file.write(indices.flip(-1).contiguous().numpy().tobytes())
            file.flush()
            reply = judge.request(wire.SELECT, 0, 1, fd=file.fileno())
            size = 4 * indices.numel()
            data = bytearray(os.pread(file.fileno(), size, 0))
        self.assertEqual(reply[:3], [1, 2, 1])  # of float32, as they were given
        chosen = torch.frombuffer(data, dtype=torch.float32).view(indices.shape)
        self.assertTrue(torch.equal(chosen, best.flip(-1)))
        self.assertEqual(judge.request(wire.SELECT, 0, 0, fd=os.memfd_create("empty"))[0], 0)


if __name__ == "__main__":
    unittest.main()
