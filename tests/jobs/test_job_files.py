"""The artifact store: what is read is what was written, nothing is reached beside it, and nothing stays behind."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from pointsman.errors import ArtifactError, UserError
from pointsman.jobs.artifacts import hold
from pointsman.jobs.cleanup import delete_job, forget_small, forget_words, sweep_files, sweep_folders
from pointsman.jobs.context import JobContext
from pointsman.jobs.files import MEDIA, ArtifactStore
from pointsman.jobs.lease import Claim
from pointsman.jobs.store import Jobs
from pointsman.jobs.view import JobView
from pointsman.jobs.workplace import Workplace

Start = Callable[..., JobView]
RunHere = Callable[[str], str | None]


@pytest.fixture(params=["local", "memory"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> ArtifactStore:
    """A local folder, and a store that has no local paths, as a bucket has none."""
    url = (
        str(tmp_path / "a folder" / "artifacts") if request.param == "local" else f"memory://{tmp_path.name}/artifacts"
    )
    return ArtifactStore(url, cache=tmp_path / "cache")


def place_of(files: ArtifactStore, hash: str, suffix: str) -> str:
    return next(str(path) for path in files._fs.find(files._root) if path.endswith(f"{hash}{suffix}"))


def test_what_is_put_is_read_and_named_by_its_content(files: ArtifactStore, tmp_path: Path) -> None:
    data = b'{"a": 1}'
    stored = files.put(data, ".json")
    assert (stored.hash, stored.size, stored.media) == (hashlib.sha256(data).hexdigest(), 8, "application/json")
    assert files.read(stored.hash, ".json") == data
    local = files.fetch(stored.hash, ".json")
    assert local.read_bytes() == data and local.suffix == ".json"
    source = tmp_path / "weights.safetensors"
    source.write_bytes(data * 500_000)
    large = files.put(source, ".safetensors")
    assert files.fetch(large.hash, ".safetensors").read_bytes() == source.read_bytes()
    assert {(found.hash, found.suffix) for found in files.found()} == {
        (stored.hash, ".json"),
        (large.hash, ".safetensors"),
    }


def test_content_that_is_put_twice_lies_there_once(files: ArtifactStore) -> None:
    with ThreadPoolExecutor(4) as pool:
        stored = list(pool.map(lambda _: files.put(b"same", ".md"), range(8)))
    assert len(set(stored)) == 1 and len(list(files.found())) == 1
    assert files.sweep_unfinished(datetime.now(UTC) + timedelta(seconds=60)) == 0, "nothing was left beside it"


def test_damaged_bytes_are_not_loaded(files: ArtifactStore) -> None:
    stored = files.put(b"weights", ".safetensors")
    with files._fs.open(place_of(files, stored.hash, ".safetensors"), "wb") as file:
        file.write(b"weightz")
    for load in (files.read, files.fetch):
        with pytest.raises(ArtifactError, match=f"artifact {stored.hash}.safetensors is damaged: its bytes have"):
            load(stored.hash, ".safetensors")


def test_a_damaged_copy_is_fetched_again(tmp_path: Path) -> None:
    files = ArtifactStore(f"memory://{tmp_path.name}", cache=tmp_path / "cache")
    stored = files.put(b"weights", ".safetensors")
    files.fetch(stored.hash, ".safetensors").write_bytes(b"half")
    with pytest.raises(ArtifactError, match="is damaged"):
        files.fetch(stored.hash, ".safetensors")
    assert files.fetch(stored.hash, ".safetensors").read_bytes() == b"weights"


def test_an_absent_file_is_named(files: ArtifactStore) -> None:
    for load in (files.read, files.fetch):
        with pytest.raises(ArtifactError, match=r"artifact 0{64}\.json is not in the store"):
            load("0" * 64, ".json")
    files.delete("0" * 64, ".json")


@pytest.mark.parametrize(
    "hash", ["", "../../etc/passwd", "0" * 63, "0" * 65, "A" * 64, "0" * 62 + "/.", "0" * 64 + "\n", "\x00" * 64]
)
def test_nothing_but_a_hash_makes_a_path(files: ArtifactStore, hash: str) -> None:
    for act in (files.read, files.fetch, files.delete, files.exists):
        with pytest.raises(UserError, match="artifact: expected a hash of 64 hexadecimal digits, got"):
            act(hash, ".json")


@pytest.mark.parametrize("suffix", ["", ".pkl", ".pt", ".bin", ".json/../x", "json", ".JSON", ".so"])
def test_only_formats_that_run_no_code(files: ArtifactStore, suffix: str) -> None:
    with pytest.raises(UserError, match=r"artifact: expected one of \.safetensors, \.json"):
        files.put(b"x", suffix)
    with pytest.raises(UserError, match=r"artifact: expected one of"):
        files.read("0" * 64, suffix)


def test_no_format_is_a_pickle() -> None:
    assert not {".pkl", ".pickle", ".pt", ".pth", ".bin", ".joblib", ".npy", ".npz"} & set(MEDIA)


def test_a_write_that_fails_leaves_nothing(files: ArtifactStore, tmp_path: Path) -> None:
    """The file changes while it is copied: what arrives is not what was hashed."""
    from pointsman.jobs.files import describe

    source = tmp_path / "x.json"
    source.write_bytes(b"before")
    stored = describe(source, ".json")
    source.write_bytes(b"after")
    with pytest.raises(ArtifactError, match="is damaged"):
        files.put_described(stored, source)
    assert list(files.found()) == []
    assert files.sweep_unfinished(datetime.now(UTC) + timedelta(seconds=60)) == 0


def test_an_address_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="artifacts: 'nosuch://x' cannot be used: Protocol not known: nosuch"):
        ArtifactStore("nosuch://x", cache=tmp_path)


def test_a_jobs_file_is_found_by_its_name(place: Workplace, engine: Engine, jobs: Jobs, held: Claim) -> None:
    artifacts = JobContext(place, engine, held).artifacts
    artifacts.put_bytes("labels.jsonl", b"{}\n")
    assert artifacts.read("labels.jsonl") == b"{}\n"
    second = artifacts.put_bytes("labels.jsonl", b"{}\n{}\n")
    assert artifacts.fetch("labels.jsonl").read_bytes() == b"{}\n{}\n"
    assert [found.hash for found in place.files().found()] == [second.hash], "what had the name before is gone"
    assert [(one.name, one.size, one.media) for one in jobs.artifacts(held.job_id)] == [
        ("labels.jsonl", 6, "application/jsonl")
    ]
    artifacts.remove("labels.jsonl")
    assert jobs.artifacts(held.job_id) == [] and list(place.files().found()) == []
    with pytest.raises(ArtifactError, match=f"job {held.job_id} has no file 'labels.jsonl'"):
        artifacts.read("labels.jsonl")


@pytest.mark.parametrize("name", ["", "x" * 201 + ".json", "a\nb.json"])
def test_a_name_is_readable(place: Workplace, engine: Engine, held: Claim, name: str) -> None:
    with pytest.raises(UserError, match="artifact: expected a name of 1 to 200 printable characters"):
        JobContext(place, engine, held).artifacts.put_bytes(name, b"x")


def test_deleting_a_job_cleans_its_files(
    place: Workplace, engine: Engine, jobs: Jobs, start: Start, run_here: RunHere
) -> None:
    job, twin, other = start(), start(), start(seed=2)
    for one in (job, twin, other):
        run_here(one.id)
    shared, alone = jobs.artifacts(job.id)[0].hash, jobs.artifacts(other.id)[0].hash
    delete_job(engine, place.files(), job.id)
    assert jobs.find(job.id) is None and jobs.logs(job.id) == [] and jobs.artifacts(job.id) == []
    with engine.connect() as connection:
        assert (
            connection.execute(text("SELECT count(*) FROM job_chunk WHERE job_id = :id"), {"id": job.id}).scalar() == 0
        )
    assert {found.hash for found in place.files().found()} == {shared, alone}, "its twin has the same file"
    delete_job(engine, place.files(), twin.id)
    assert {found.hash for found in place.files().found()} == {alone}


def test_a_file_outlives_its_job_where_something_holds_it(
    place: Workplace, engine: Engine, jobs: Jobs, start: Start, run_here: RunHere
) -> None:
    job = start()
    run_here(job.id)
    (artifact,) = jobs.artifacts(job.id)
    with engine.begin() as connection:
        hold(connection, artifact, "label set 3")
    delete_job(engine, place.files(), job.id)
    assert place.files().exists(artifact.hash, artifact.suffix)


def test_a_file_outlives_its_job_where_a_router_is_made_of_it(
    place: Workplace, engine: Engine, jobs: Jobs, start: Start, run_here: RunHere
) -> None:
    job = start()
    run_here(job.id)
    (artifact,) = jobs.artifacts(job.id)
    with engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO router_version (id, kind, artifact_hash, config, state, created_at) "
                "VALUES (gen_random_uuid(), 'classic', :hash, '{}', 'candidate', now())"
            ),
            {"hash": artifact.hash},
        )
    delete_job(engine, place.files(), job.id)
    assert place.files().exists(artifact.hash, artifact.suffix)


def test_what_runs_is_not_deleted(place: Workplace, engine: Engine, jobs: Jobs, held: Claim) -> None:
    with pytest.raises(UserError, match=f"job {held.job_id} is running; cancel it first, then delete it"):
        delete_job(engine, place.files(), held.job_id)
    assert jobs.get(held.job_id).state == "running"


def test_files_without_a_job_are_swept_once_they_are_old(
    place: Workplace, engine: Engine, jobs: Jobs, start: Start, run_here: RunHere
) -> None:
    job = start()
    run_here(job.id)
    files = place.files()
    files.put(b"nobody's", ".json")
    half = place.settings.home / "artifacts" / "unfinished"
    (half / "x").write_bytes(b"half")
    now = datetime.now(UTC)
    assert sweep_files(engine, files, now) == 0, "its job may be about to name it"
    assert sweep_files(engine, files, now + timedelta(days=2)) == 2
    assert [found.hash for found in files.found()] == [jobs.artifacts(job.id)[0].hash]
    assert list(half.iterdir()) == []


def test_folders_of_attempts_that_are_over_are_swept(
    place: Workplace, engine: Engine, held: Claim, start: Start, run_here: RunHere
) -> None:
    done = start()
    run_here(done.id)
    folder = place.settings.home / "jobs"
    for name in (f"{held.job_id}-1", f"{held.job_id}-0", f"{done.id}-1", "help-1-2", "notes"):
        (folder / name / "scratch").mkdir(parents=True)
    assert sweep_folders(engine, place.settings.home) == 2
    assert {path.name for path in folder.iterdir()} == {f"{held.job_id}-1", "help-1-2", "notes"}


def test_what_jobs_said_is_forgotten_in_time(engine: Engine, jobs: Jobs, start: Start, run_here: RunHere) -> None:
    job, small, waiting = start(), start(small=True), start()
    for one in (job, small):
        run_here(one.id)
    now = datetime.now(UTC)
    assert forget_words(engine, now - timedelta(days=1)) == (0, 0)
    assert forget_small(engine, now - timedelta(days=1)) == 0
    lines, parts = forget_words(engine, now + timedelta(days=1))
    assert lines >= 4 and parts == 3
    assert forget_small(engine, now + timedelta(days=1)) == 1
    assert jobs.logs(job.id) == [] and jobs.get(job.id).state == "done", "that it was, and what came of it, stays"
    assert jobs.find(small.id) is None and jobs.get(waiting.id).state == "queued"


def test_the_retention_job_does_all_of_it(jobs: Jobs, run_here: RunHere, place: Workplace, engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO idempotency (project_id, key_hash, state, claim, request_hash, created_at, expires_at) "
                "VALUES (gen_random_uuid(), 'k', 'done', gen_random_uuid(), 'r', now(), now() - interval '1 hour')"
            )
        )
    job = jobs.start("retention", {"days": 30}, project_id="0" * 8 + "-0000-7000-8000-" + "0" * 12, asked_by=None)
    assert run_here(job.id) == "done"
    result: dict[str, Any] = jobs.get(job.id).result or {}
    assert (result["days"], result["answers"], result["files"]) == (30, 1, 0)
    assert jobs.get(job.id).stages_done == ["log", "jobs", "files"]


def test_retention_may_reach_back_before_there_were_ids(jobs: Jobs, run_here: RunHere) -> None:
    job = jobs.start("retention", {"days": 36_500}, project_id="0" * 8 + "-0000-7000-8000-" + "0" * 12, asked_by=None)
    assert run_here(job.id) == "done"
    assert (jobs.get(job.id).result or {})["partitions"] == []
