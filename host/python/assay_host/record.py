"""The construction record: what a candidate's host needs to construct and call a model like the
reference's. The reference's host writes it, with the constructor's arguments pickled before the
constructor could change them.
"""

import os
import pickle
import sys

import torch

from assay_host import failure
from assay_host.failure import Failure

_VERSION = 1


def pickled(init_inputs):
    """Returns the init inputs pickled; None for values that cannot be pickled, or not be read
    without the problem's module.
    """
    module = sys.modules.pop("problem")
    try:
        written = pickle.dumps(init_inputs, protocol=4)
        pickle.loads(written)
    except Exception:
        return None
    finally:
        sys.modules["problem"] = module
    return written


def write(fd, init_inputs, facts):
    """Writes pickled init inputs and the other facts to the descriptor. Returns the record's size;
    0 without a descriptor or init inputs.
    """
    if fd < 0 or init_inputs is None:
        return 0
    try:
        written = pickle.dumps(
            {
                "version": _VERSION,
                "init_inputs": init_inputs,
                # A problem may set it as it is imported, for candidates, too.
                "default_dtype": torch.get_default_dtype(),
                **facts,
            },
            protocol=4,
        )
    except Exception:
        return 0
    with open(fd, "wb", closefd=False) as file:
        file.write(written)
    return len(written)


def read(path, fd=-1):
    """Returns the record from the descriptor or else the file. Raises Failure."""
    try:
        if fd < 0:
            with open(path, "rb") as file:
                written = file.read()
        else:
            written = os.pread(fd, os.fstat(fd).st_size, 0)
        record = pickle.loads(written)
        record["init_inputs"] = pickle.loads(record["init_inputs"])
        return record
    except Exception as error:
        raise Failure(
            failure.CANDIDATE_LOAD,
            "the problem's get_init_inputs() cannot be handed to a candidate: "
            f"{failure.describe_exception(error)}",
        ) from error
