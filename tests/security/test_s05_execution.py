"""S5, S9, S12: no text and no file that is stored or sent is ever run as code."""

from __future__ import annotations

import ast

import pytest
from kombu import Connection, Exchange, Queue
from kombu.exceptions import ContentDisallowed

from pointsman.jobs.celery_app import make_app
from pointsman.jobs.files import MEDIA

ALLOWED = {
    "platform/pointsman/verifiers/code_driver.py": "runs a worker's code on purpose, alone in a sandboxed process",
}
RUNNING = {"eval", "exec", "compile", "__import__"}
LOADING = {
    ("pickle", "load"), ("pickle", "loads"), ("pickle", "Unpickler"), ("cPickle", "load"), ("dill", "load"),
    ("cloudpickle", "load"), ("cloudpickle", "loads"), ("joblib", "load"), ("torch", "load"), ("shelve", "open"),
    ("marshal", "loads"), ("yaml", "load"), ("os", "system"), ("os", "popen"),
}  # fmt: skip


def dangerous(source: str) -> list[str]:
    """What a module calls that runs what it is given, or loads a format that can."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id in RUNNING:
            found.append(f"{node.func.id}:{node.lineno}")
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            name = (node.func.value.id, node.func.attr)
            if name in LOADING:
                found.append(f"{'.'.join(name)}:{node.lineno}")
        for keyword in node.keywords:
            value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
            if (keyword.arg in ("shell", "allow_pickle", "trust_remote_code") and value is not False) or (
                keyword.arg == "weights_only" and value is not True
            ):
                found.append(f"{keyword.arg}:{node.lineno}")
    return found


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("eval(text)", "eval:1"),
        ("pickle.loads(data)", "pickle.loads:1"),
        ("torch.load(path)", "torch.load:1"),
        ("f(path, weights_only=False)", "weights_only:1"),
        ("np.load(path, allow_pickle=True)", "allow_pickle:1"),
        ("run(line, shell=True)", "shell:1"),
        ("from_pretrained(name, trust_remote_code=True)", "trust_remote_code:1"),
    ],
)
def test_the_gate_sees_it(line, named):
    assert dangerous(line) == [named]


def test_nothing_of_ours_runs_what_it_is_given(sources):
    found = {f"{file}: {call}" for file, source in sources.items() if file not in ALLOWED for call in dangerous(source)}
    assert found == set()
    assert set(ALLOWED) <= set(sources)


def test_no_format_that_can_run_code_is_an_artifact():
    assert not set(MEDIA) & {".pkl", ".pickle", ".pt", ".pth", ".bin", ".joblib", ".ckpt", ".npy", ".npz", ".py"}


def test_a_pickled_message_is_refused_by_the_jobs_broker_client(tmp_path):
    conf = make_app("memory://").conf
    assert (conf.accept_content, conf.task_serializer, conf.result_backend) == (["json"], "json", None)
    assert conf.result_accept_content in (None, ["json"])
    marker = tmp_path / "ran"
    queue = Queue("s12", Exchange(""), routing_key="s12")
    refused = []
    with Connection("memory://") as connection, connection.channel() as channel:
        queue(channel).declare()
        producer = connection.Producer(channel, serializer="pickle")
        producer.publish(Payload(str(marker)), routing_key="s12", exchange="")
        with connection.Consumer(
            [queue], channel=channel, accept=conf.accept_content,
            callbacks=[lambda body, message: refused.append(body)],
            on_decode_error=lambda message, error: refused.append(error),
        ):  # fmt: skip
            connection.drain_events(timeout=5)
    assert [type(error) for error in refused] == [ContentDisallowed]
    assert not marker.exists()


class Payload:
    """Makes a file where it is unpickled."""

    def __init__(self, marker: str) -> None:
        self.marker = marker

    def __reduce__(self):
        return (open, (self.marker, "w"))
