"""A block's calls as one CUDA graph: captured before the block's clock runs, launched within it.
Python's time for each launch is then not in the block.
"""

import contextlib

import torch


class BlockGraph:
    """The graph of the present block. Only for trusted hosts: one that captures knows the order of
    its calls ahead.
    """

    def __init__(self, library):
        self._library = library
        self._refused = False
        self._stream = self._pool = self._graph = self._stays = None

    def capture(self, work, warm_up):
        """Captures the launches of work(); none of them runs. Returns False if that fails, for
        example because work() waits for the device; later calls then do not try again. warm_up()
        runs once, before the first capture: code that loads on first use cannot load within one.
        """
        if self._refused:
            return False
        self._graph = None
        try:
            if self._stream is None:
                self._open(warm_up)
            self._graph = self._captured(work)
            result = self._library.instantiate_graph(self._graph.raw_cuda_graph())
            if result:
                raise RuntimeError(self._library.describe_device(result))
        except BaseException:  # the problem's code may raise anything
            self._graph = None
            self._refused = True
        return not self._refused

    def release(self):
        """Gives the memory of graphs back, once blocks are no longer captured."""
        if self._stream is None:
            return
        self._stream = self._pool = self._graph = self._stays = None
        torch.cuda.empty_cache()

    def launch(self):
        """Launches the graph. Returns CUDA's result."""
        return self._library.launch_graph()

    def _open(self, warm_up):
        self._stream = torch.cuda.Stream()
        torch.cuda.synchronize()  # it does not wait for other streams
        with torch.cuda.stream(self._stream):
            warm_up()
        torch.cuda.synchronize()
        # Graphs have memory of their own: what launched calls left with the allocator, on either
        # stream, would be held beside it for as long as this host lives.
        torch.cuda.empty_cache()
        # The memory of graphs that come and go stays as long as one graph does that stays.
        self._pool = torch.cuda.graph_pool_handle()
        self._stays = self._captured(lambda: torch.zeros(1, device="cuda"))

    def _captured(self, work):
        graph = torch.cuda.CUDAGraph(keep_graph=True)
        with torch.cuda.stream(self._stream):
            graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
            try:
                work()
            except BaseException:
                self._give_up(graph)
                raise
            graph.capture_end()
        return graph

    def _give_up(self, graph):
        with contextlib.suppress(RuntimeError):  # says once more what went wrong
            graph.capture_end()
        # Where that failed before it came to this, each later allocation would look for a capture.
        end = getattr(torch._C, "_cuda_endAllocateToPool", None)
        if end is not None:
            with contextlib.suppress(RuntimeError):
                end(torch.cuda.current_device(), self._pool)
