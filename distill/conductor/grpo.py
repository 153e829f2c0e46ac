"""Group-relative policy optimisation of a conductor with TRL's GRPOTrainer (arXiv 2402.03300; Conductor 2512.04388 §4).

Of each contested request a group of plans is drawn, carried out by the serving engine, and each plan moved towards or
away from by how much more than its group's mean it earned, over the group's deviation; ratio clipped, no reference
model (beta 0). A group whose plans all earned the same teaches nothing, and one with an unknown reward cannot be
compared: both are dropped, which is a gradient of 0, and counted. Where no group is left for long, there is no signal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from distill.conductor.example import Example
from distill.conductor.group_reward import NO_SIGNAL as NO_SIGNAL
from distill.conductor.group_reward import ConductorGrpo as ConductorGrpo
from distill.conductor.group_reward import RolloutReward as RolloutReward
from distill.conductor.group_reward import Tally as Tally
from distill.conductor.group_reward import contested as contested
from distill.conductor.group_reward import spread as spread
from distill.conductor.judging import judge
from distill.conductor.plateau import Point, best
from distill.conductor.rollouts import Item, Scene
from distill.conductor.sft import Load, Watching, keep_best, last_whole, mark_whole
from distill.conductor.tuning import tuned
from distill.files import read_json, write_json

_DONE = "result.json"


@dataclass(frozen=True)
class Trained:
    """`folder` holds the best look's weights; the start is a look too, so it may be they. `kept`: rollouts that
    ended right, for whoever wants to learn from the same samples."""

    folder: Path
    curve: tuple[Point, ...]
    tally: Tally
    parts: tuple[Mapping[str, float], ...] = field(default=())

    @property
    def taught(self) -> bool:
        """Whether there ever was a signal."""
        return self.tally.live > 0


def train(
    load: Load,
    scene: Scene,
    items: Sequence[Item],
    validation: Sequence[Item],
    config: ConductorGrpo,
    folder: Path,
    watching: Watching | None = None,
) -> tuple[Trained, list[Example]]:
    """Trains from `load`'s model on `items`; gives the result and the rollouts that ended right, as examples.

    The result's `tally.stopped` is `no_signal` where no group taught for `patience` steps, `budget` where that was used
    up, else None. Goes on from the last whole checkpoint where an earlier call was killed.
    """
    from distill.conductor.sampling import kept

    if not items:
        return Trained(folder / "best", (), Tally(stopped=NO_SIGNAL)), []
    tally, curve = _restored(folder)
    watching = watching or Watching()
    reward = RolloutReward(scene, items, tally, config, watching.spend)
    if not (folder / _DONE).exists():
        _run(load, scene, validation, config, folder, watching, reward, curve)
        about = {"curve": [asdict(point) for point in curve], "tally": asdict(tally), "parts": reward.parts}
        write_json(folder / _DONE, about)
    done = read_json(folder / _DONE)
    points = tuple(Point(**point) for point in done["curve"])
    result = Trained(folder / "best", points, Tally(**done["tally"]), tuple(done["parts"]))
    return result, kept(scene, reward.right)


def _run(
    load: Load,
    scene: Scene,
    validation: Sequence[Item],
    config: ConductorGrpo,
    folder: Path,
    watching: Watching,
    reward: RolloutReward,
    curve: list[Point],
) -> None:
    from trl.trainer.grpo_trainer import GRPOTrainer

    plain, tokenizer = load()
    model = tuned(plain, config.tuning, rank=config.rank)
    look = _looker(model, tokenizer, scene, validation, folder, watching, curve)
    if not curve:
        look(0)
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=reward,
        args=_arguments(config, folder),
        train_dataset=_dataset(scene, reward.items, tokenizer),
        processing_class=tokenizer,
        callbacks=[_ending(config, folder, watching, reward.tally, curve, look)],
    )
    trainer.train(resume_from_checkpoint=last_whole(folder))


def _looker(
    model: Any,
    tokenizer: Any,
    scene: Scene,
    validation: Sequence[Item],
    folder: Path,
    watching: Watching,
    curve: list[Point],
) -> Callable[[int], None]:
    def look(step: int) -> None:
        seen = judge(model, tokenizer, scene, validation)
        point = Point(step, round(float(seen.totals.mean()), 6), float(seen.outcomes.mean()), seen.parse_rate)
        curve.append(point)
        watching.spend(sum(one.cost for one in seen.rolled))
        watching.look("grpo", point)
        if best(curve) == point:
            keep_best(model, tokenizer, folder / "best", {"step": step, "form": scene.form})

    return look


def _ending(
    config: ConductorGrpo,
    folder: Path,
    watching: Watching,
    tally: Tally,
    curve: list[Point],
    look: Callable[[int], None],
) -> Any:
    from transformers import TrainerCallback

    class Ending(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
            watching.check()
            last = state.global_step >= config.steps or tally.stopped is not None
            if last or state.global_step % config.look_every == 0:
                if curve[-1].step < state.global_step:
                    look(state.global_step)
                control.should_save = True
            control.should_training_stop = control.should_training_stop or tally.stopped is not None
            return control

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
            mark_whole(folder, state.global_step, [asdict(point) for point in curve], tally=asdict(tally))
            return control

    return Ending()


def _restored(folder: Path) -> tuple[Tally, list[Point]]:
    whole = last_whole(folder)
    if whole is None:
        return Tally(), []
    kept = read_json(Path(whole) / "whole.json")
    return Tally(**kept["tally"]), [Point(**point) for point in kept["curve"]]


def _dataset(scene: Scene, items: Sequence[Item], tokenizer: Any) -> Any:
    from datasets import Dataset

    rows = []
    for number, item in enumerate(items):
        messages = scene.asked(item).messages
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        tokens = len(tokenizer(text, add_special_tokens=False)["input_ids"])
        rows.append({"prompt": messages, "item": number, "tokens": tokens})
    return Dataset.from_list(rows)


def _arguments(config: ConductorGrpo, folder: Path) -> Any:
    import torch
    from trl.trainer.grpo_config import GRPOConfig

    cuda = torch.cuda.is_available()
    return GRPOConfig(
        output_dir=str(folder),
        learning_rate=config.learning_rate,
        max_steps=config.steps,
        per_device_train_batch_size=config.groups * config.generations,
        num_generations=config.generations,
        max_completion_length=config.max_new,
        temperature=config.temperature,
        epsilon=config.epsilon,
        beta=config.beta,
        loss_type="bnpo",
        lr_scheduler_type="constant",
        save_strategy="no",
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
