"""Names that a file may use of a PyTorch newer than the one that is here: it says nothing about the
file that they are missing. Names of no release, such as misspelt ones, are the file's own fault.
"""

import re
import traceback
import types

import torch

# The first release that has each name. A module stands for all that is in it.
_RELEASES = {
    (2, 0): """
        torch.compile torch._dynamo torch._inductor torch.func torch.vmap torch.set_default_device
        torch.nn.functional.scaled_dot_product_attention torch.backends.cuda.sdp_kernel
        torch.backends.cuda.enable_flash_sdp torch.backends.cuda.enable_math_sdp
        torch.backends.cuda.enable_mem_efficient_sdp torch.Tensor.untyped_storage""",
    (2, 1): """
        torch.compiler torch.export torch._scaled_mm torch.float8_e4m3fn torch.float8_e5m2""",
    (2, 2): "torch.float8_e4m3fnuz torch.float8_e5m2fnuz torch.nn.Module.compile",
    (2, 3): """
        torch.nn.attention torch.uint16 torch.uint32 torch.uint64 torch.get_default_device
        torch.amp.GradScaler""",
    (2, 4): """
        torch.nn.RMSNorm torch.nn.functional.rms_norm torch.rms_norm torch.library.custom_op
        torch.library.register_fake torch.amp.custom_fwd torch.amp.custom_bwd""",
    (2, 5): "torch.nn.attention.flex_attention torch.nn.Buffer",
    (2, 6): "torch.accelerator torch.library.triton_op torch.library.wrap_triton",
    (2, 7): "torch.float8_e8m0fnu",
    (2, 8): "torch.float4_e2m1fn_x2",
}
_SINCE = {name: release for release, names in _RELEASES.items() for name in names.split()}
# Arguments that PyTorch's own functions and classes got later, as their message names them.
_ARGUMENTS = {
    (2, 1): """
        LayerNorm.bias TransformerEncoderLayer.bias TransformerDecoderLayer.bias
        load_state_dict.assign scaled_dot_product_attention.scale""",
    (2, 5): "scaled_dot_product_attention.enable_gqa",
}
_ARGUMENT_SINCE = {name: since for since, names in _ARGUMENTS.items() for name in names.split()}
_ARGUMENT = re.compile(r"(\w+)(?:\.__init__)?\(\) got an unexpected keyword argument '(\w+)'")
# Python 3.9, and PyTorch's own lookups, say it in words alone.
_ATTRIBUTE = re.compile(r"module '(torch[\w.]*)' has no attribute '(\w+)'")
_IMPORT = re.compile(r"cannot import name '(\w+)' from '(torch[\w.]*)'")


def lacking(error):
    """Returns the words for an exception that comes of a name which only a newer PyTorch has; None
    for any other.
    """
    here = _release(torch.__version__)
    name, since = _argument(error)
    if not since:
        name = _name(error)
        parts = name.split(".") if name else []
        found = (_SINCE.get(".".join(parts[:count])) for count in range(len(parts), 1, -1))
        since = next((release for release in found if release and release > here), None)
    if not since or since <= here:
        return None
    release = ".".join(map(str, since))
    return (
        f"it needs {name} of PyTorch {release}, which is not here (this is PyTorch "
        f"{torch.__version__}): use --python with PyTorch {release} or later"
    )


def _argument(error):
    """Returns the words for an argument that a newer PyTorch's function has, and its release."""
    found = _ARGUMENT.search(str(error)) if isinstance(error, TypeError) else None
    if not found:
        return None, None
    function, name = found.groups()
    frame = traceback.extract_tb(error.__traceback__)[-1]
    # A file's own class may have the name of PyTorch's.
    if not re.search(rf"[\w)]\.{function}\(", frame.line or ""):
        return None, None
    return f"the argument {name} of {function}", _ARGUMENT_SINCE.get(f"{function}.{name}")


def _release(version):
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def _name(error):
    """Returns the full name that was looked up in vain; None if it is none of PyTorch's."""
    if isinstance(error, ModuleNotFoundError):
        return error.name
    if isinstance(error, ImportError):
        found = _IMPORT.search(str(error))
        return f"{found.group(2)}.{found.group(1)}" if found else None
    if not isinstance(error, AttributeError):
        return None
    owner, name = getattr(error, "obj", None), getattr(error, "name", None)
    if isinstance(owner, types.ModuleType):
        return f"{owner.__name__}.{name}"
    for kind, of_kind in ((torch.Tensor, "torch.Tensor"), (torch.nn.Module, "torch.nn.Module")):
        if isinstance(owner, kind):
            return f"{of_kind}.{name}"
    found = _ATTRIBUTE.search(str(error))
    return f"{found.group(1)}.{found.group(2)}" if found else None
