// Tells that CUDA sources want CUDA's libraries (assay_host/lean.py).
#pragma once
