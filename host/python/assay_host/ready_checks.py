"""Ready checks for factorisations whose answer is not unique: a problem's file says
`check = "eigh"`, "svd" or "qr". The vectors may have any sign, and any order where values are
equal. The matrix is the first input with two axes or more; the outputs are those of
torch.linalg.eigh, svd or qr, of eigh the vectors alone, too.
"""

import ast

import torch

# Names of functions whose answers are not unique, with the ready check of each; None: it has none.
_FUNCTIONS = {
    "eigh": "eigh",
    "symeig": "eigh",
    "svd": "svd",
    "qr": "qr",
    "eig": None,
    "lobpcg": None,
    "svd_lowrank": None,
    "pca_lowrank": None,
}
# Times the dtype's spacing and the root of the size, for errors relative to a norm.
_ERRORS_MAX = 16


def number_of_function(tree):
    """Returns 0 if a problem's syntax tree calls no such function; of the first that it calls the
    number of its ready check, from 1 in the order of CHECKS, or the next one without.
    """
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        name = getattr(called, "attr", getattr(called, "id", None))
        # A layer of the module's own may have any name.
        if name in _FUNCTIONS and getattr(getattr(called, "value", None), "id", "") != "self":
            return 1 + [*CHECKS, None].index(_FUNCTIONS[name])
    return 0


def eigh(inputs, outputs):
    matrix, limit = _matrix(inputs)
    lower = matrix.tril()
    matrix = lower + matrix.tril(-1).transpose(-1, -2)
    vectors = next(output for output in outputs if output.dim() == matrix.dim()).double()
    own = [output.double() for output in outputs if output.dim() == matrix.dim() - 1]
    product = matrix @ vectors
    found = own[0] if own else (vectors * product).sum(-2)
    return (
        _orthonormal(vectors, limit, "the vectors")
        or _close(product, vectors * found.unsqueeze(-2), matrix, limit, "A V", "V L")
        or _ordered(found, matrix, limit, "values")
    )


def svd(inputs, outputs):
    matrix, limit = _matrix(inputs)
    left, found, right = (output.double() for output in outputs)
    count = found.shape[-1]
    left, right = left[..., :count], right[..., :count, :]
    if bool((found < 0).any()):
        return "a singular value is negative"
    return (
        _orthonormal(left, limit, "the columns of U")
        or _orthonormal(right.transpose(-1, -2), limit, "the rows of Vh")
        or _close((left * found.unsqueeze(-2)) @ right, matrix, matrix, limit, "U S Vh", "A")
        or _ordered(-found, matrix, limit, "singular values")
    )


def qr(inputs, outputs):
    matrix, limit = _matrix(inputs)
    left, right = (output.double() for output in outputs)
    return (
        _orthonormal(left, limit, "the columns of Q")
        or _close(left @ right, matrix, matrix, limit, "Q R", "A")
        or _close(right.tril(-1), 0 * right, matrix, limit, "R below its diagonal", "0")
    )


CHECKS = {"eigh": eigh, "svd": svd, "qr": qr}


def _matrix(inputs):
    """Returns the matrix in float64, and the error that is right, relative to a norm."""
    matrix = next(x for x in inputs if isinstance(x, torch.Tensor) and x.dim() > 1)
    size = max(matrix.shape[-2:])
    return matrix.double(), _ERRORS_MAX * torch.finfo(matrix.dtype).eps * max(1, size) ** 0.5


def _norm(tensor):
    return torch.linalg.matrix_norm(tensor)


def _close(given, wanted, matrix, limit, words, what):
    """Returns a sentence unless both agree, relative to the matrix's norm."""
    error, scale = _norm(given - wanted), _norm(matrix)
    if bool((error <= limit * scale).all()):  # false of NaN
        return None
    worst = (error / scale).max().item()
    return f"{words} is not {what}: off by {worst:.3g} of the norm of A; up to {limit:.3g} is right"


def _orthonormal(columns, limit, words):
    count = columns.shape[-1]
    unit = torch.eye(count, dtype=columns.dtype, device=columns.device)
    error = _norm(columns.transpose(-1, -2) @ columns - unit)
    if bool((error <= limit * max(1, count) ** 0.5).all()):
        return None
    return f"{words} are not orthonormal: off by {error.max().item():.3g}"


def _ordered(found, matrix, limit, words):
    steps = found[..., :-1] - found[..., 1:]
    if bool((steps <= limit * _norm(matrix).unsqueeze(-1)).all()):
        return None
    return f"the {words} are not in the order of torch.linalg"
