"""An environment of the `verifiers` package: a model writes kernels, verdicts reward them.

`eval assay_kernels -m MODEL` plays it; `--env.taskset.turns`, `.formula` and `.episodes` set it.
"""

import asyncio

import verifiers.v1 as vf
from assay_episodes import Episodes

__all__ = ["KernelEnv", "KernelTaskset"]


class KernelConfig(vf.TasksetConfig):
    episodes: int = 64  # tasks; each has a seed of its own
    turns: int = 4  # answers of an episode
    formula: str = "fast"  # of rewards: fast or kevin

    def begin(self):
        return Episodes("--turns", str(self.turns), "--formula", self.formula)


class KernelData(vf.TaskData):
    seed: int


class KernelTask(vf.Task[KernelData]):
    pass


class KernelTaskset(vf.Taskset[KernelTask, KernelConfig]):
    def load(self):
        process = self.config.begin()
        try:
            for seed in range(self.config.episodes):
                event = process.ask("reset", seed=seed)
                process.ask("close", episode=event["episode"])
                said = {message["role"]: message["content"] for message in event["messages"]}
                data = KernelData(
                    idx=seed,
                    name=f"{event['problem']['name']}#{seed}",
                    system_prompt=said.get("system"),
                    prompt=said["user"],
                    seed=seed,
                )
                yield KernelTask(data, self.config.task)
        finally:
            process.close()


class KernelEnvConfig(vf.EnvConfig):
    # The model answers in the conversation alone: it runs no code.
    player: vf.AgentConfig = vf.AgentConfig(harness={"id": "null"}, runtime=vf.SubprocessConfig())


class KernelEnv(vf.Env[KernelEnvConfig]):
    """Answers each of the model's answers with what the judge found."""

    process = None

    async def start(self):
        self.process, self.lock = self.taskset.config.begin(), asyncio.Lock()

    async def stop(self):
        if self.process is not None:
            await asyncio.to_thread(self.process.close)
            self.process = None

    async def ask(self, request, **fields):
        async with self.lock:
            return await asyncio.to_thread(self.process.ask, request, **fields)

    async def run(self, task, agents):
        episode = (await self.ask("reset", seed=task.data.seed))["episode"]
        try:
            async with agents.player.interaction(task) as interaction:
                rewards = await self.play(episode, interaction)
        finally:
            await self.ask("close", episode=episode)
        known = [reward for reward in rewards if reward is not None]
        if rewards and not known:
            raise RuntimeError("the speed of each answer stayed open: there is no reward")
        interaction.trace.record_reward("best_reward", max(known, default=0.0))

    async def play(self, episode, interaction):
        """Returns the rewards of the answers; null where the speed stayed open."""
        rewards = []
        segment = await interaction.turn()  # the task's prompt is the episode's first
        while not segment.terminated:
            event = await self.ask("step", episode=episode, text=segment.last_reply or "")
            if "failure" in event:
                raise RuntimeError(event["failure"])  # of the machine: no reward, and no penalty
            rewards.append(event["reward"])
            if event["done"]:
                break
            segment = await interaction.turn(event["messages"][-1]["content"])
        return rewards
