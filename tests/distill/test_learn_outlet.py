"""Label sets and routers leave as folders that load elsewhere, with cards that say what they rest on."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from uuid import UUID

import numpy as np
import pyarrow.parquet
import pytest
import torch
from sqlalchemy import insert
from typer.testing import CliRunner

from distill.files import read_json
from distill.jobs.found import StoredLabels
from distill.outlet.commands import register
from distill.outlet.label_sets import export_labels
from distill.outlet.routers import export_router
from distill.router_model.backbone import BackboneConfig, load_backbone
from distill.router_model.checkpoint import LearnedRouter, load_router, save_router
from distill.router_model.heads import IndexHead
from harness.routing.base import RouterVersion
from harness.routing.classic_model import read_model
from pointsman.commands.app import build_app
from pointsman.errors import UserError
from pointsman.identity import DEFAULT_PROJECT_ID as PROJECT
from pointsman.identity import ensure_project
from pointsman.promotion.versions import StoredVersion, find_version
from pointsman.tables import METADATA

TEXTS = ["What is 2 plus 3?", "def solve(a1, b2): return"]


@pytest.fixture
def kept(keep_labels, table):
    identity, labels = keep_labels(table, PROJECT)
    return StoredLabels(identity, labels, labels.manifest())


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_label_set_in_parts_with_its_card(engine, kept, tmp_path, form) -> None:
    with engine.connect() as connection:
        written = export_labels(
            connection, kept, "f" * 64, tmp_path / "set", form=form, redact=["python"], stated={"worker-0": "MIT"}
        )
    assert written == {**{part: kept.labels.parts.count(part) for part in ("train", "validation", "test")},
                       "left_out": 0}  # fmt: skip
    file = tmp_path / "set" / f"train.{form}"
    rows = (
        [json.loads(line) for line in file.read_text().splitlines()]
        if form == "jsonl" else pyarrow.parquet.read_table(file).to_pylist()
    )  # fmt: skip
    n = int(kept.labels.of("train")[3])
    assert np.allclose(rows[3]["target"], kept.labels.targets[n]) and abs(sum(rows[3]["target"]) - 1) < 1e-9
    assert rows[3]["best"] == kept.labels.arms[int(kept.labels.mean[n].argmax())].worker
    assert not any("python" in row["text"] for row in rows) and any("[redacted]" in row["text"] for row in rows)
    card = (tmp_path / "set" / "README.md").read_text()
    assert f"hash of its content `{kept.labels.hash}`" in card and f"path: test.{form}" in card
    assert "| worker-0 | 300 | MIT |" in card and "| worker-1 | 300 | not stated: look up" in card
    with engine.connect() as connection, pytest.raises(UserError, match="holds something already"):
        export_labels(connection, kept, "f" * 64, tmp_path / "set")


def stored(engine, run_job, folder) -> StoredVersion:
    """A saved router's folder as a version of the log."""
    files, config = run_job.place.files(), read_json(folder / "learned.json")
    for name in config["files"]:
        files.put(folder / name, "." + name.rpartition(".")[2])
    version = RouterVersion("learned", config, None)
    with engine.begin() as connection:
        values = {"id": UUID(version.id), "kind": "learned", "artifact_hash": version.artifact_hash, "config": config,
                  "state": "candidate", "created_at": datetime.now(UTC)}  # fmt: skip
        connection.execute(insert(METADATA.tables["router_version"]).values(values))
        return find_version(connection, version.id)


@pytest.mark.parametrize("kind", ["LORA", "SVF"])
def test_an_adapted_router_loads_with_transformers_and_peft(engine, run_job, tiny_qwen, tmp_path, kind) -> None:
    from peft import LoraConfig, PeftModel, get_peft_model
    from transformers import AutoModel

    from distill.svf import SvfConfig, adapt, choose, count_offsets, set_offsets

    backbone = load_backbone(BackboneConfig(str(tiny_qwen), None, "last"))
    if kind == "SVF":
        backbone.model = adapt(backbone.model, SvfConfig(target_modules=choose(backbone.model, layers=[-1])))
        set_offsets(backbone.model, torch.linspace(-0.2, 0.2, count_offsets(backbone.model)))
    else:
        lora = LoraConfig(target_modules=["q_proj"], r=4, init_lora_weights=False)
        backbone.model = get_peft_model(backbone.model, lora).eval()
    head = IndexHead(backbone.width, ["a", "b"])
    torch.nn.init.normal_(head.arms)
    router = LearnedRouter(backbone, head)
    save_router(tmp_path / "saved", router)
    with engine.connect() as connection:
        version = stored(engine, run_job, tmp_path / "saved")
        done = export_router(connection, run_job.place.files(), PROJECT, version, tmp_path / "out")
    assert {"head.safetensors", "adapter/adapter_model.safetensors", "README.md"} <= set(done.files)
    assert (done.measured, done.sourced) == (False, False)
    texts = [file.read_text() for file in (tmp_path / "out").rglob("*") if file.suffix in (".json", ".md")]
    assert not any(str(tiny_qwen) in text or str(tmp_path) in text for text in texts)
    card = (tmp_path / "out" / "README.md").read_text()
    assert "library_name: peft" in card and ("register()" in card) == (kind == "SVF")

    again = load_router(tmp_path / "out", backbone_folder=str(tiny_qwen))
    assert np.abs(again.logits(TEXTS) - router.logits(TEXTS)).max() < 1e-5
    model = PeftModel.from_pretrained(AutoModel.from_pretrained(tiny_qwen), tmp_path / "out" / "adapter").eval()
    numbers, mask = backbone.batch(TEXTS)
    with torch.inference_mode():
        mine = backbone.model(input_ids=numbers, attention_mask=mask).last_hidden_state
        theirs = model(input_ids=numbers, attention_mask=mask).last_hidden_state
    assert (mine - theirs)[mask.bool()].abs().max() < 1e-4


def test_a_classic_router_with_what_was_measured(engine, run_job, kept, database_url, tmp_path) -> None:
    with engine.begin() as connection:
        ensure_project(connection)
    trained = run_job("train", {"labels": kept.id, "method": "linear"}, PROJECT).result["router_version"]
    judged = run_job("evaluate", {"labels": kept.id, "ablations": False}, PROJECT)
    assert judged.state == "done", judged.reason
    config = tmp_path / "pointsman.toml"
    worker = '[[workers]]\nname = "w"\ndescription = "w"\nmodel = "w"\nbase_url = "http://127.0.0.1:1/v1"\n'
    config.write_text(f'[database]\nurl = "{database_url}"\n{worker}')
    app = build_app([])
    register(app)
    environment = {"POINTSMAN_HOME": str(run_job.place.settings.home), "COLUMNS": "100"}

    def run(*arguments):
        return CliRunner(env=environment).invoke(app, ["export", *map(str, arguments), "--config", str(config)])

    done = run("router", trained[:8], tmp_path / "out", "--licence", "worker-0=MIT", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["measured"], told["sourced"]) == (True, True)
    card = (tmp_path / "out" / "README.md").read_text()
    line = next(one for one in judged.result["comparison"] if one["router"] == f"classic {trained[:8]}")
    low, high = line["value_interval"]
    assert f"| mean reward | {line['value']} | [{low}, {high}] |" in card
    assert kept.labels.hash in card and "| worker-0 | 300 | MIT |" in card
    model, _ = read_model(tmp_path / "out")
    assert len(model.scores(TEXTS[0], 0)) == 4
    done = run("labels", kept.id[:8], tmp_path / "labels", "--form", "parquet")
    assert done.exit_code == 0 and "left out 0" in done.stdout, done.output
    failed = run("router", trained[:8], tmp_path / "more", "--licence", "nobody")
    assert failed.exit_code == 2 and "--licence: expected WORKER=TEXT" in failed.stderr
