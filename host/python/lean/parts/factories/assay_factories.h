// Tells that CUDA sources want factories with gradients (assay_host/lean.py).
#pragma once
