"""The action and the observation of the environment."""

from openenv.core.env_server.types import Action, Observation


class KernelAction(Action):
    """`code`: an answer of the model, with the candidate in a fenced block, or the bare source."""

    code: str


class KernelObservation(Observation):
    """`prompt`: the next prompt; the others are of the last verdict."""

    prompt: str = ""
    turn: int = 0
    outcome: str = ""
    feedback: str = ""
    compilation_success: bool = False
    correctness_pass: bool = False
    speedup: float | None = None
    certified_speedup: float | None = None
