"""Episodes of `assay env` on the problem of this folder."""

try:
    import assay
except ImportError as error:
    raise ImportError("install Assay's wheel into this Python: pip install FILE.whl") from error

ARGUMENTS = ["@ARGUMENTS@"]  # the problem, then options of `assay env`


class Episodes(assay.Episodes):
    """One process of `assay env`: `ask`, `ready` and `close` are the package's."""

    def __init__(self, *more):
        super().__init__(*ARGUMENTS, *more)
