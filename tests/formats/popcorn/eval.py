# The evaluator is Assay's.
