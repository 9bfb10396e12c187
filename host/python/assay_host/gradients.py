"""`--grad`: a problem or a candidate whose forward gives its gradients, too.

The file's own class is changed in its place, and keeps its constructor, weights and name. Its
forward then takes the inputs, and for each floating-point result a gradient of the same shape. It
returns the results, the gradients of the floating-point inputs, and those of the parameters that
require them, in these orders. So forward and backward are one call, checked and timed as one.
"""

import inspect

import torch

from assay_host import failure, own_check
from assay_host.failure import Failure

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def of_problem(module):
    """Changes `Model` and `get_inputs` of a problem's module, given as its globals()."""
    model, draw = module.get("Model"), module.get("get_inputs")
    if not isinstance(model, type) or not callable(draw):
        raise Failure(failure.PROBLEM_LOAD, "--grad needs a class Model and a get_inputs()")
    if own_check.NAME in module:
        raise Failure(
            failure.PROBLEM_LOAD,
            f"--grad: the problem's own {own_check.NAME}(inputs, outputs) judges the results of "
            "forward and knows nothing of gradients: judge it without --grad, or take the "
            f"{own_check.NAME} out of a copy of the file",
        )
    forward = model.forward
    _change(model, failure.PROBLEM_LOAD)

    def get_inputs():
        inputs = draw()
        names = [name for name in inspect.signature(forward).parameters][1:]
        if not isinstance(inputs, (list, tuple)) or len(inputs) != len(names):
            raise Failure(
                failure.PROBLEM_INPUTS,
                "--grad needs a get_inputs() that returns a list, one value for each argument of "
                f"forward: {', '.join(names)}",
            )
        results = [result for result in _results(module, forward, inputs) if _is_float(result)]
        if not results:
            raise Failure(
                failure.PROBLEM_OUTPUT,
                "--grad: forward has no floating-point result, so it has no gradient to judge",
            )
        return [*inputs, *(torch.randn(result.shape, dtype=result.dtype) for result in results)]

    module["get_inputs"] = get_inputs


def of_candidate(module):
    """Changes `ModelNew` of a candidate's module, given as its globals()."""
    if isinstance(module.get("ModelNew"), type):  # else the host says what is missing
        _change(module["ModelNew"], failure.CANDIDATE_FORWARD)


def _change(model, kind):
    forward = model.forward
    parameters = list(inspect.signature(forward).parameters.values())
    if not all(one.kind in _POSITIONAL and one.default is one.empty for one in parameters):
        raise Failure(kind, "--grad needs a forward whose arguments are named and have no defaults")
    count = len(parameters) - 1

    def with_gradients(self, *arguments):
        inputs, given = arguments[:count], arguments[count:]
        with torch.enable_grad():
            inputs = [v.detach().requires_grad_() if _is_float(v) else v for v in inputs]
            results = _listed(forward(self, *inputs))
            sources = [value for value in inputs if _is_float(value)]
            sources += [value for value in self.parameters() if value.requires_grad]
            chosen = [result for result in results if _is_float(result)]
            if len(chosen) != len(given):
                raise ValueError(
                    f"--grad: forward gave {len(chosen)} floating-point results where the "
                    f"reference has {len(given)}"
                )
            pairs = [pair for pair in zip(chosen, given) if pair[0].requires_grad]
            gradients = torch.autograd.grad(
                [result for result, _ in pairs],
                sources,
                [gradient for _, gradient in pairs],
                allow_unused=True,
            )
        found = [
            torch.zeros_like(source) if gradient is None else gradient
            for source, gradient in zip(sources, gradients)
        ]
        return tuple([result.detach() for result in results] + found)

    rest = inspect.Parameter("gradient", inspect.Parameter.VAR_POSITIONAL)
    with_gradients.__signature__ = inspect.Signature([*parameters, rest])
    with_gradients.gives_gradients = True
    model.forward = with_gradients


def names(model, inputs):
    """Names of the gradients that a model of `--grad` returns behind its results, in their order:
    x_gradient, linear.weight_gradient; none of another model. `inputs`: (name, value) of each.
    """
    if not getattr(getattr(model, "forward", None), "gives_gradients", False):
        return []
    values = dict(inputs)
    own = list(inspect.signature(model.forward).parameters)[:-1]
    sources = [name for name in own if _is_float(values.get(name))]
    sources += [name for name, value in model.named_parameters() if value.requires_grad]
    return [f"{name}_gradient" for name in sources]


def _listed(results):
    return list(results) if isinstance(results, (tuple, list)) else [results]


def _is_float(value):
    return isinstance(value, torch.Tensor) and value.dtype.is_floating_point


def _results(module, forward, inputs):
    """Results of the problem's own forward, for their shapes: without storage where that works."""
    state = torch.get_rng_state()
    arguments = module["get_init_inputs"]() if "get_init_inputs" in module else []
    model = module["Model"](*arguments)
    torch.set_rng_state(state)
    try:
        bare = [v.to("meta") if isinstance(v, torch.Tensor) else v for v in inputs]
        return _listed(forward(model.to("meta"), *bare))
    except Exception:  # an operator without this form, or a tensor that forward itself makes
        return _listed(forward(module["Model"](*arguments), *inputs))
