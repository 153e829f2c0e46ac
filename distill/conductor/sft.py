"""Supervised fine-tuning with TRL's SFTTrainer: several learning rates, the best by validation reward.

A look at the validation set is greedy plans, carried out: the loss says little of what a plan earns. A run ends when
its curve is flat (`plateau`) or its steps are used up, and its result is the weights of its best look. A run that
was killed goes on from its last whole checkpoint, and one that had ended is not run again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from distill.conductor.example import Example, repeated
from distill.conductor.judging import judge
from distill.conductor.plateau import Point, best, flat
from distill.conductor.rollouts import Item, Scene
from distill.conductor.tuning import Tuning, save, tuned
from distill.files import read_json, write_json
from pointsman.errors import UserError

Load = Callable[[], tuple[Any, Any]]
"""Gives (model, tokenizer), the model as it is before training."""
_DONE, _WHOLE = "result.json", "whole"


@dataclass(frozen=True)
class ConductorSft:
    """`look_every` steps the validation set is looked at; `steps` is the most that a run takes."""

    learning_rates: tuple[float, ...] = (5e-4, 1e-3, 2e-3)
    steps: int = 600
    batch: int = 16
    look_every: int = 50
    tolerance: float = 0.02
    tuning: Tuning = "full"
    rank: int = 16
    warmup: int = 20
    longest: int = 1_024
    seed: int = 1


@dataclass(frozen=True)
class Fitted:
    """One finished run. `folder` holds the weights of its best look."""

    folder: Path
    learning_rate: float
    curve: tuple[Point, ...]
    plateau: bool
    steps: int

    @property
    def reward(self) -> float:
        return best(self.curve).reward


@dataclass(frozen=True)
class SftRun:
    """All learning rates, the best first chosen."""

    chosen: Fitted
    tried: tuple[Fitted, ...]


@dataclass(frozen=True)
class Watching:
    """What a job or a benchmark hears of: `look` after each look; `check` raises where the work is to end;
    `spend` hears what rollouts cost, and raises where that is too much."""

    look: Callable[[str, Point], None] = field(default=lambda name, point: None)
    check: Callable[[], None] = field(default=lambda: None)
    spend: Callable[[float], None] = field(default=lambda usd: None)


def fit(
    load: Load,
    examples: Sequence[Example],
    scene: Scene,
    validation: Sequence[Item],
    config: ConductorSft,
    folder: Path,
    watching: Watching | None = None,
) -> SftRun:
    """Tries every learning rate. Raises `UserError` where there is nothing to learn from."""
    if not examples:
        raise UserError("conductor: no examples that ended well; nothing to learn from")
    tried = []
    for rate in config.learning_rates:
        tried.append(_one(load, examples, scene, validation, config, rate, folder / f"rate-{rate:g}", watching))
    return SftRun(max(tried, key=lambda one: one.reward), tuple(tried))


def _one(
    load: Load,
    examples: Sequence[Example],
    scene: Scene,
    validation: Sequence[Item],
    config: ConductorSft,
    rate: float,
    folder: Path,
    watching: Watching | None,
) -> Fitted:
    if (folder / _DONE).exists():
        return _fitted(folder, rate)
    from trl.trainer.sft_trainer import SFTTrainer

    plain, tokenizer = load()
    model = tuned(plain, config.tuning, rank=config.rank)
    looks = _looks(folder, model, tokenizer, scene, validation, config, rate, watching or Watching())
    trainer = SFTTrainer(
        model=model,
        args=_arguments(config, rate, folder),
        train_dataset=_dataset(examples, config),
        processing_class=tokenizer,
        callbacks=[looks],
    )
    trainer.train(resume_from_checkpoint=last_whole(folder))
    curve = looks.curve
    about = {"curve": [asdict(point) for point in curve], "plateau": flat(curve, config.tolerance)}
    write_json(folder / _DONE, about | {"steps": int(trainer.state.global_step)})
    for left in folder.glob("checkpoint-*"):
        shutil.rmtree(left)
    return _fitted(folder, rate)


def _fitted(folder: Path, rate: float) -> Fitted:
    kept = read_json(folder / _DONE)
    curve = tuple(Point(**point) for point in kept["curve"])
    return Fitted(folder / "best", rate, curve, bool(kept["plateau"]), int(kept["steps"]))


def _dataset(examples: Sequence[Example], config: ConductorSft) -> Any:
    """In memory, from lists: nothing is read from outside, and no loading script can run."""
    from datasets import Dataset

    shown = repeated(examples, config.seed)
    return Dataset.from_list(
        [{"prompt": one.prompt, "completion": [{"role": "assistant", "content": one.completion}]} for one in shown]
    )


def _arguments(config: ConductorSft, rate: float, folder: Path) -> Any:
    import torch
    from trl.trainer.sft_config import SFTConfig

    cuda = torch.cuda.is_available()
    return SFTConfig(
        output_dir=str(folder),
        learning_rate=rate,
        max_steps=config.steps,
        per_device_train_batch_size=config.batch,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=config.warmup,
        train_sampling_strategy="group_by_length",
        max_length=config.longest,
        completion_only_loss=True,
        save_strategy="steps",
        save_steps=config.look_every,
        save_total_limit=2,
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
        dataloader_pin_memory=False,
        gradient_checkpointing=False,
        use_cpu=not cuda,
        bf16=cuda,
        seed=config.seed,
        data_seed=config.seed,
    )


def _looks(
    folder: Path,
    model: Any,
    tokenizer: Any,
    scene: Scene,
    validation: Sequence[Item],
    config: ConductorSft,
    rate: float,
    watching: Watching,
) -> Any:
    """The callback that looks, keeps the best weights, and ends the run. A class of transformers, so made here."""
    from transformers import TrainerCallback

    class Looks(TrainerCallback):
        def __init__(self) -> None:
            self.curve = _curve(folder)

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
            watching.check()
            if state.global_step % config.look_every and state.global_step < config.steps:
                return control
            if not self.curve or self.curve[-1].step < state.global_step:
                self._look(state.global_step)
            control.should_training_stop = control.should_training_stop or flat(self.curve, config.tolerance)
            control.should_save = True
            return control

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
            mark_whole(folder, state.global_step, [asdict(point) for point in self.curve])
            return control

        def _look(self, step: int) -> None:
            seen = judge(model, tokenizer, scene, validation)
            point = Point(step, round(float(seen.totals.mean()), 6), float(seen.outcomes.mean()), seen.parse_rate)
            self.curve.append(point)
            watching.look(f"rate {rate:g}", point)
            if best(self.curve) == point:
                keep_best(model, tokenizer, folder / "best", {"step": step, "form": scene.form, "rate": rate})

    return Looks()


def keep_best(model: Any, tokenizer: Any, folder: Path, about: dict[str, Any]) -> None:
    """Saves the weights as they are now, merged, without ending their training; the folder is replaced whole."""
    import copy

    waiting = folder.with_name(folder.name + ".new")
    shutil.rmtree(waiting, ignore_errors=True)
    save(copy.deepcopy(model) if hasattr(model, "merge_and_unload") else model, tokenizer, waiting, about)
    shutil.rmtree(folder, ignore_errors=True)
    waiting.rename(folder)


def mark_whole(folder: Path, step: int, curve: list[dict[str, Any]], **more: Any) -> None:
    """Says that a checkpoint was written to its end, and what had been seen until then."""
    write_json(folder / f"checkpoint-{step}" / f"{_WHOLE}.json", {"curve": curve} | more)


def last_whole(folder: Path) -> str | None:
    """The newest checkpoint that was written to its end; a kill in the middle leaves one that was not."""
    found = [one.parent for one in folder.glob(f"checkpoint-*/{_WHOLE}.json")]
    return str(max(found, key=lambda one: int(one.name.split("-")[-1]))) if found else None


def _curve(folder: Path) -> list[Point]:
    whole = last_whole(folder)
    kept = read_json(Path(whole) / f"{_WHOLE}.json")["curve"] if whole else []
    return [Point(**point) for point in kept]
