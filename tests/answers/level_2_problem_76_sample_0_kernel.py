import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# cuBLASLt called directly, with bias and ReLU in its epilogue: the output is written once.
cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cublasLt.h>

#define LT(call)                                                                   \
    do {                                                                           \
        cublasStatus_t s_ = (call);                                                \
        TORCH_CHECK(s_ == CUBLAS_STATUS_SUCCESS, "cublasLt error ", (int)s_);      \
    } while (0)

torch::Tensor gemm_bias_relu(torch::Tensor x, torch::Tensor w, torch::Tensor bias) {
    const int64_t M = x.size(0), K = x.size(1), N = w.size(0);
    auto out = torch::empty({M, N}, x.options());
    const size_t ws_size = 64 << 20;
    auto ws = torch::empty({(int64_t)ws_size}, x.options().dtype(torch::kUInt8));

    static cublasLtHandle_t handle = nullptr;
    if (!handle) LT(cublasLtCreate(&handle));

    // Row major out = x w^T is column major out^T = w^T' x^T: (N x K)(K x M).
    cublasLtMatmulDesc_t desc;
    LT(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    cublasOperation_t ta = CUBLAS_OP_T, tb = CUBLAS_OP_N;
    LT(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &ta, sizeof(ta)));
    LT(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSB, &tb, sizeof(tb)));
    cublasLtEpilogue_t ep = CUBLASLT_EPILOGUE_RELU_BIAS;
    LT(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &ep, sizeof(ep)));
    const void* bp = bias.data_ptr<float>();
    LT(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bp, sizeof(bp)));

    cublasLtMatrixLayout_t la, lb, lc;
    LT(cublasLtMatrixLayoutCreate(&la, CUDA_R_32F, K, N, K));
    LT(cublasLtMatrixLayoutCreate(&lb, CUDA_R_32F, K, M, K));
    LT(cublasLtMatrixLayoutCreate(&lc, CUDA_R_32F, N, M, N));

    static cublasLtMatmulAlgo_t algo;
    static int64_t cm = -1, cn = -1, ck = -1;
    if (cm != M || cn != N || ck != K) {
        cublasLtMatmulPreference_t pref;
        LT(cublasLtMatmulPreferenceCreate(&pref));
        LT(cublasLtMatmulPreferenceSetAttribute(pref, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                &ws_size, sizeof(ws_size)));
        cublasLtMatmulHeuristicResult_t res;
        int found = 0;
        LT(cublasLtMatmulAlgoGetHeuristic(handle, desc, la, lb, lc, lc, pref, 1, &res, &found));
        TORCH_CHECK(found > 0, "no cublasLt algorithm");
        algo = res.algo;
        cm = M; cn = N; ck = K;
        cublasLtMatmulPreferenceDestroy(pref);
    }
    const float one = 1.f, zero = 0.f;
    LT(cublasLtMatmul(handle, desc, &one, w.data_ptr<float>(), la, x.data_ptr<float>(), lb, &zero,
                      out.data_ptr<float>(), lc, out.data_ptr<float>(), lc, &algo,
                      ws.data_ptr(), ws_size, at::cuda::getCurrentCUDAStream()));
    cublasLtMatrixLayoutDestroy(la);
    cublasLtMatrixLayoutDestroy(lb);
    cublasLtMatrixLayoutDestroy(lc);
    cublasLtMatmulDescDestroy(desc);
    return out;
}
"""

cpp_source = "torch::Tensor gemm_bias_relu(torch::Tensor x, torch::Tensor w, torch::Tensor bias);"

ext = load_inline(name="gemm_bias_relu_lt", cpp_sources=cpp_source, cuda_sources=cuda_source,
                  functions=["gemm_bias_relu"], extra_ldflags=["-lcublasLt"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, bias_shape):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features, bias=False)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        return ext.gemm_bias_relu(x.contiguous(), self.gemm.weight, self.bias)
