"""TRL's own loss and gradient on a batch that earned sampled. Runs in TRL's environment, which earned is not in.

    .venv-trl/bin/python bench/peers/trl_loss.py FOLDER

FOLDER holds `job.json`, the model folder `model` with the weights that sampled, and `moved.safetensors` with the
weights that are trained on. Everything but the sampling is TRL's: its trainer scores the given completions by the given
rewards, makes advantages and old log-probabilities of them, and computes its loss. Writes `answer.json` and
`answer.safetensors`.
"""

import json
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
import transformers
from datasets import Dataset
from double_precision import in_double_precision
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoTokenizer, LlamaForCausalLM
from trl import GRPOConfig, GRPOTrainer


@dataclass(frozen=True, kw_only=True)
class Job:
    """What `bench/trl_equality.py` asks for; one row a completion, the G of a group together."""

    prompt_ids: list[list[int]]
    completion_ids: list[list[int]]
    rewards: list[float]
    group_size: int
    temperature: float
    max_new_tokens: int
    settings: dict[str, dict[str, Any]]
    """Of GRPOConfig, by the name of a comparison."""
    precisions: list[str]


class GivenCompletions(GRPOTrainer):
    """GRPOTrainer that finds its completions in a job."""

    job: Job

    def _generate(self, prompts: list[str]) -> tuple[Any, ...]:
        texts = ["" for _ in self.job.completion_ids]
        return self.job.prompt_ids, self.job.completion_ids, None, texts, None, {}, None, None


def trainer_for(job: Job, settings: dict[str, Any], folder: Path, precision: str) -> GivenCompletions:
    """Return a trainer with the weights that sampled."""
    rows = len(job.prompt_ids)
    config = GRPOConfig(
        output_dir=str(folder / "trl"),
        report_to=[],
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        per_device_train_batch_size=rows,
        gradient_accumulation_steps=1,
        num_generations=job.group_size,
        # Old log-probabilities are kept only where a batch is used more than once.
        num_iterations=2,
        temperature=job.temperature,
        max_completion_length=job.max_new_tokens,
        **settings,
    )

    def given_rewards(completions: list[str], **_: object) -> list[float]:
        return job.rewards

    trainer = GivenCompletions(
        model=LlamaForCausalLM.from_pretrained(folder / "model", dtype=torch.float32),
        reward_funcs=given_rewards,
        args=config,
        train_dataset=Dataset.from_dict({"prompt": ["given"] * rows}),
        processing_class=AutoTokenizer.from_pretrained(folder / "model"),
    )
    trainer.job = job
    trainer.current_gradient_accumulation_steps = 1
    trainer.model.train()
    if precision == "float64":
        for model in filter(None, (trainer.model, trainer.ref_model)):
            in_double_precision(model)
    return trainer


def gradient_of(trainer: GivenCompletions, inputs: dict[str, Any]) -> tuple[float, Tensor]:
    """Return the loss and its flat gradient, parameters in the order of their names."""
    trainer.model.zero_grad()
    loss = trainer.compute_loss(trainer.model, inputs)
    loss.backward()
    parameters = sorted(trainer.model.named_parameters())
    return float(loss.detach()), torch.cat([parameter.grad.flatten() for _, parameter in parameters])


def main() -> None:
    folder = Path(sys.argv[1])
    job = Job(**json.loads((folder / "job.json").read_text(encoding="utf-8")))
    moved = load_file(folder / "moved.safetensors")
    losses: dict[str, float] = {}
    advantages: dict[str, list[float]] = {}
    gradients: dict[str, Tensor] = {}
    for precision in job.precisions:
        for name, settings in job.settings.items():
            trainer = trainer_for(job, settings, folder, precision)
            inputs = trainer._generate_and_score_completions([{"prompt": "given"} for _ in job.prompt_ids])
            advantages[name] = inputs["advantages"].tolist()
            for point in ("start", "moved"):
                if point == "moved":
                    trainer.model.load_state_dict(moved, strict=False)
                key = f"{precision}/{name}/{point}"
                losses[key], gradients[key] = gradient_of(trainer, inputs)
    versions = {name: metadata.version(name) for name in ("trl", "torch", "transformers")}
    answer = {"versions": versions, "losses": losses, "advantages": advantages}
    (folder / "answer.json").write_text(json.dumps(answer), encoding="utf-8")
    save_file(gradients, folder / "answer.safetensors")


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    main()
