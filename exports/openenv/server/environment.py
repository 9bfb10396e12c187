"""Episodes of `assay env` as an environment of OpenEnv. Each has a process of its own."""

import uuid

from assay_episodes import Episodes
from models import KernelAction, KernelObservation
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import State


class KernelEnvironment(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self._episodes = None
        self._episode = ""
        self._state = State(episode_id="", step_count=0)

    def reset(self, seed=None, episode_id=None, **_):
        if self._episodes is None:
            self._episodes = Episodes()
        if self._episode:
            self._episodes.ask("close", episode=self._episode)
        event = self._episodes.ask("reset", seed=seed or 0)
        self._episode = event["episode"]
        self._state = State(episode_id=episode_id or str(uuid.uuid4()), step_count=0)
        return KernelObservation(prompt=event["messages"][-1]["content"], done=False, reward=None)

    def step(self, action: KernelAction, timeout_s=None, **_):
        if not self._episode:
            self.reset()  # POST /step has an environment of its own, which nobody has reset
        text = action.code if "```" in action.code else f"```\n{action.code}\n```"
        event = self._episodes.ask("step", episode=self._episode, text=text)
        if "failure" in event:
            raise RuntimeError(event["failure"])  # of the machine: the step may be sent again
        self._state.step_count += 1
        rewards = event.get("rewards") or {}
        return KernelObservation(
            prompt=event["messages"][-1]["content"],
            turn=event["turn"],
            outcome=event["outcome"],
            feedback=event.get("message") or "",
            compilation_success=bool(rewards.get("built")),
            correctness_pass=bool(rewards.get("correct")),
            speedup=rewards.get("speedup"),
            certified_speedup=rewards.get("certified_speedup"),
            done=event["done"],
            reward=event["reward"],
        )

    @property
    def state(self):
        return self._state

    def close(self):
        if self._episodes is not None:
            self._episodes.close()
            self._episodes, self._episode = None, ""
