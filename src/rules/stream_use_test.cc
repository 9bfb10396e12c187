// Tests which sources are taken to use one stream alone.
#include "rules/stream_use.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(StreamWordTest, AnOrdinaryModuleHasNone) {
  EXPECT_EQ(StreamWord("import torch, math\n"
                       "import torch.nn as nn, numpy as np\n"
                       "from torch.utils.cpp_extension import load_inline\n"
                       "from typing import List\n"
                       "class Model(nn.Module):\n"
                       "    def forward(self, x):\n"
                       "        return torch.relu(self.conv(x))  # congruent\n"),
            "");
}

// Nearly every extension launches on PyTorch's current stream.
TEST(StreamWordTest, TheCurrentStreamIsNoOther) {
  EXPECT_EQ(StreamWord("cudaStream_t stream = at::cuda::getCurrentCUDAStream();\n"
                       "kernel<<<grid, block, 0, at::cuda::getCurrentCUDAStream().stream()>>>(x);\n"
                       "other<<<grid, block, 0, stream>>>(x);\n"
                       "cudaStreamSynchronize(stream);\n"),
            "");
}

TEST(StreamWordTest, MakersOfStreamsAreFound) {
  for (const char* source :
       {"cudaStreamCreate(&s);", "cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);",
        "cuStreamCreateWithPriority(&s, 0, 0);", "auto s = at::cuda::getStreamFromPool();",
        "c10::cuda::CUDAStreamGuard guard(s);", "k<<<1, 1, 0, cudaStreamPerThread>>>();",
        "#define CUDA_API_PER_THREAD_DEFAULT_STREAM", "s = torch.cuda.Stream()",
        "with torch.cuda.stream(s):", "with torch.cuda.stream( s ):", "torch.cuda.set_stream(s)",
        "g = torch.cuda.CUDAGraph()", "with torch.cuda.graph(g):", "cudaGraphLaunch(graph, s);",
        "import torch.distributed as dist", "torch.compile(f, mode='reduce-overhead')",
        "cuda_flags=['--default-stream=per-thread']"})
    EXPECT_NE(StreamWord(source), "") << source;
}

// cuDNN's recurrent layers and the solvers have streams of their own.
TEST(StreamWordTest, LayersWithStreamsOfTheirOwnAreFound) {
  EXPECT_EQ(StreamWord("self.lstm = nn.LSTM(10, 20)"), "lstm");
  EXPECT_EQ(StreamWord("cell = nn.GRU(10, 20)"), "GRU");
  EXPECT_EQ(StreamWord("torch.nn.RNN(10, 20)"), "RNN");
  EXPECT_EQ(StreamWord("cudnnRNNForward(handle)"), "cudnnRNNForward");
  EXPECT_EQ(StreamWord("torch.linalg.solve(a, b)"), "linalg");
  EXPECT_EQ(StreamWord("torch.inverse(a)"), "inverse");
}

TEST(StreamWordTest, ModulesThatAreNotKnownMayMakeStreams) {
  EXPECT_EQ(StreamWord("import torch\nfrom transformers import AutoModel\n"), "transformers");
  EXPECT_EQ(StreamWord("import torch, torchvision\n"), "torchvision");
  EXPECT_EQ(StreamWord("def f():\n    import cupy as cp\n"), "cupy");
  EXPECT_EQ(StreamWord("from . import layers\n"), ".");
  EXPECT_EQ(StreamWord("import numpy.linalg_, cupy.cuda as cc  # arrays\n"), "cupy");
}

TEST(StreamWordTest, ProseIsNoImport) {
  EXPECT_EQ(StreamWord("from memory, which takes longest,\nimport what is needed\n"), "");
  EXPECT_EQ(StreamWord("// beside max-autotune; __syncclusters(); the graph of calls\n"), "");
}

TEST(StreamWordTest, AnEmptySourceHasNone) { EXPECT_EQ(StreamWord(""), ""); }

}  // namespace
}  // namespace assay
