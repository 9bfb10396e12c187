"""One call of the reference's forward, and the checks of what it returns."""

import torch

from assay_host import failure, structure, values
from assay_host.failure import Failure


def call(model, arguments, place, path, form=None):
    """Returns the results of model(*arguments) as a flat list of tensors, and their form
    (structure.form_of). `place`: the Placement of the module. `form`: of an earlier call. Raises
    Failure(kProblemForward or kProblemOutput).
    """
    try:
        result = model(*arguments)
    except BaseException as error:
        raise failure.because_of_forward(error, path, torch.__version__) from error
    finally:
        torch.set_grad_enabled(False)  # foreign code may have changed it
    try:
        form = structure.form_of(result) if form is None else form
        results = structure.flatten_outputs(result, [], form)
    except structure.OutputMismatch as error:
        raise Failure(failure.PROBLEM_FORWARD, f"from call to call: {error}") from error
    except TypeError as error:
        raise Failure(
            failure.PROBLEM_OUTPUT,
            f"forward returns a {error}, which cannot be judged; outputs must be tensors",
        ) from error
    for tensor in results:
        reason = values.unsupported(tensor, place.device)
        if reason is None and place.misplaced(tensor):
            reason = f"on {tensor.device}, and the inputs are on {place.device}"
        if reason:
            raise Failure(
                failure.PROBLEM_OUTPUT,
                f"forward returns a tensor that cannot be judged: {reason}",
            )
    return results, form


def copy_outputs(outputs, targets, precision):
    """Copies outputs to a slot's, which are None where there is none. `precision`: 0 native, 1
    float64. Raises Failure for others than at the first call.
    """
    if len(outputs) != len(targets):
        raise Failure(
            failure.PROBLEM_FORWARD, "forward gives another number of outputs from call to call"
        )
    for tensor, target in zip(outputs, targets):
        if target is None:
            continue
        if tensor.shape != target.shape or (precision == 0 and tensor.dtype != target.dtype):
            raise Failure(
                failure.PROBLEM_FORWARD,
                "forward gives outputs of other shapes or types from call to call: they "
                "must not depend on values",
            )
        target.copy_(tensor)
