"""Assay's python host: runs a PyTorch reference, or a candidate in Python, for the judge
(docs/protocol.md).
"""
