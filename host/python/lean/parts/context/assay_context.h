// Tells that CUDA sources want the global context and printing (assay_host/lean.py).
#pragma once
