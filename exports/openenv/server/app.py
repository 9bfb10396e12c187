"""The application: `uvicorn server.app:app --host 127.0.0.1 --port 8000`, from the folder above."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from models import KernelAction, KernelObservation  # noqa: E402
from openenv.core.env_server.http_server import create_app  # noqa: E402

from server.environment import KernelEnvironment  # noqa: E402

app = create_app(KernelEnvironment, KernelAction, KernelObservation, env_name="assay_@NAME@")
