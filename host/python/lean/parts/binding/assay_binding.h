// Tells that CUDA sources want the binding to Python (assay_host/lean.py).
#pragma once
