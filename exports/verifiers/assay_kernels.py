"""An environment of the `verifiers` package: a model writes kernels, verdicts reward them."""

import asyncio

import datasets
import verifiers as vf
from assay_episodes import Episodes


class KernelEnv(vf.MultiTurnEnv):
    def __init__(self, process, **kwargs):
        super().__init__(**kwargs)
        self.process, self.lock = process, asyncio.Lock()

    async def ask(self, request, **fields):
        async with self.lock:
            return await asyncio.to_thread(self.process.ask, request, **fields)

    async def setup_state(self, state):
        event = await self.ask("reset", seed=state["info"]["seed"])
        # In place: a copy by `|` would be a plain dict, without what a State looks up in its input.
        state["episode"], state["rewards"] = event["episode"], []
        return state

    async def env_response(self, messages, state, **_):
        said = messages[-1]
        text = said["content"] if isinstance(said, dict) else said.content
        event = await self.ask("step", episode=state["episode"], text=text or "")
        if "failure" in event:
            raise vf.Error(event["failure"])  # of the machine: no reward, and no penalty
        state["rewards"].append(event["reward"])
        if event["done"]:
            await self.ask("close", episode=state["episode"])
            state["final_env_response"] = event["messages"][-1:]
        return event["messages"][-1:]


def best_reward(state, **_):
    """Leaves out rewards that stayed open."""
    return max((reward for reward in state["rewards"] if reward is not None), default=0.0)


def load_environment(episodes=64, turns=4, formula="fast"):
    process = Episodes("--turns", str(turns), "--formula", formula)
    rows = []
    for seed in range(episodes):
        event = process.ask("reset", seed=seed)
        process.ask("close", episode=event["episode"])
        rows.append({"prompt": event["messages"], "answer": "", "info": {"seed": seed}})
    rubric = vf.Rubric(funcs=[best_reward])
    return KernelEnv(process, dataset=datasets.Dataset.from_list(rows), rubric=rubric)
