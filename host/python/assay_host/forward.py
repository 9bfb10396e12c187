"""One call of the reference's forward, and the checks of what it returns."""

import torch

from assay_host import failure, structure, values
from assay_host.failure import Failure


def call(model, arguments, place, path):
    """Returns the results of model(*arguments) as a flat list of tensors. `place`: the Placement of
    the module. Raises Failure(kProblemForward or kProblemOutput).
    """
    try:
        result = model(*arguments)
    except BaseException as error:
        raise Failure(
            failure.PROBLEM_FORWARD, failure.explain_forward(error, path, torch.__version__)
        ) from error
    try:
        results = structure.flatten_outputs(result, [])
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
    return results
