// Tells that CUDA sources want lists of tensors and indexing (assay_host/lean.py).
#pragma once
