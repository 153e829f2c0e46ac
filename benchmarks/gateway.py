"""What the gateway costs: CPU per request, added latency, throughput, beside a bare pass-through in the same run.

Subjects run pinned to one core, the mock upstream and the load on the other. Ours is as served: key
check, routing by rules, exploration, usage, durable journal, shipped to PostgreSQL by its own process
(whose CPU is reported apart). LiteLLM's proxy joins where `--litellm PATH` names its executable.

Run: python benchmarks/gateway.py [--quick] [--json] [--litellm PATH]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from speed.load import Load, run_load

HERE = Path(__file__).parent
SUBJECT_CORE, OTHER_CORE = 0, 1 if (os.cpu_count() or 1) > 1 else 0
CHUNKS = 100
TICK = os.sysconf("SC_CLK_TCK")

CONFIG = """
[router]
chain = ["rule", "default"]
default = "worker-1"
[[router.rules]]
worker = "worker-2"
words = ["poem", "story"]
[[router.rules]]
worker = "worker-3"
min_chars = 20000
[gateway]
max_in_flight = 4000
"""
WORKER = """
[[workers]]
name = "worker-{n}"
description = "A worker of the benchmark."
model = "mock-{n}"
base_url = "{upstream}/v1"
price = {{ input = 1, output = 2 }}
capabilities = ["tools"]
"""
BODY = {
    "model": "pointsman",
    "temperature": 0.2,
    "messages": [
        {"role": "system", "content": "You are a helpful assistant. " * 10},
        {"role": "user", "content": "Explain in a few sentences how a railway switch works. " * 14},
    ],
}


@dataclass
class Subject:
    name: str
    port: int
    pid: int
    start_s: float
    key: str | None = None
    extra_pids: tuple[int, ...] = ()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def spawn(stack: ExitStack, command: list[str], core: int, env: dict[str, str] | None = None) -> subprocess.Popen:
    process = subprocess.Popen(
        ["taskset", "-c", str(core), *command], env=env or dict(os.environ), stdout=subprocess.DEVNULL
    )

    def end() -> None:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    stack.callback(end)
    return process


def await_port(port: int, path: str | None = None, seconds: float = 90) -> float:
    """Seconds until the port answers (with 200 on `path`)."""
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        try:
            if path is None:
                socket.create_connection(("127.0.0.1", port), 0.2).close()
            else:
                urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=2).close()
            return time.perf_counter() - began
        except OSError:
            time.sleep(0.005)
    raise SystemExit(f"nothing answers on port {port}")


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def rss_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def start_passthrough(stack: ExitStack, upstream: str) -> Subject:
    port = free_port()
    process = spawn(
        stack,
        [sys.executable, str(HERE / "speed/passthrough.py"), "--port", str(port), "--upstream", upstream],
        SUBJECT_CORE,
    )
    return Subject("passthrough", port, process.pid, await_port(port))


def start_ours(stack: ExitStack, upstream: str) -> Subject:
    from sqlalchemy import create_engine

    from pointsman.database.embedded import EmbeddedPostgres
    from pointsman.database.schema import migrate
    from pointsman.identity import create_key, ensure_project

    home = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp")))
    home.chmod(0o755)
    database = EmbeddedPostgres(home)
    database.start()
    stack.callback(database.stop)
    migrate(database.url)
    engine = create_engine(database.url)
    with engine.begin() as connection:
        ensure_project(connection)
        key = create_key(connection)
    engine.dispose()
    file = home / "pointsman.toml"
    file.write_text(CONFIG + "".join(WORKER.format(n=n, upstream=upstream) for n in range(1, 7)))
    env = {**os.environ, "POINTSMAN_HOME": str(home), "POINTSMAN_CONFIG": str(file)}
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    port = listener.getsockname()[1]
    stack.callback(listener.close)
    shipper = subprocess.Popen(
        ["taskset", "-c", str(OTHER_CORE), sys.executable, "-m", "pointsman.journal.process"],
        env=env, stdin=subprocess.PIPE,
    )  # fmt: skip
    stack.callback(shipper.wait)
    stack.callback(shipper.terminate)
    began = time.perf_counter()
    gateway = subprocess.Popen(
        ["taskset", "-c", str(SUBJECT_CORE), sys.executable, "-m", "harness.gateway.process",
         "--fd", str(listener.fileno())],
        env=env, stdin=subprocess.PIPE, pass_fds=(listener.fileno(),),
    )  # fmt: skip
    stack.callback(gateway.wait)
    stack.callback(gateway.terminate)
    await_port(port, "/readyz")
    return Subject("ours", port, gateway.pid, time.perf_counter() - began, key, (shipper.pid,))


def start_litellm(stack: ExitStack, upstream: str, executable: str) -> Subject:
    port = free_port()
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    file = folder / "litellm.yaml"
    parameters = {"model": "openai/mock", "api_base": f"{upstream}/v1", "api_key": "none"}
    file.write_text(json.dumps({"model_list": [{"model_name": "pointsman", "litellm_params": parameters}]}))
    env = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "true", "LITELLM_LOG": "ERROR"}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    process = spawn(
        stack, [executable, "--config", str(file), "--port", str(port), "--host", "127.0.0.1"], SUBJECT_CORE, env
    )
    return Subject("litellm_proxy", port, process.pid, await_port(port, "/health/liveliness"))


def measure(subject: Subject, body: bytes, concurrency: int, requests: int) -> tuple[Load, float, float]:
    """A run: what the load saw, CPU ms per request of the subject, and of its helper processes."""
    before, extra = cpu_seconds(subject.pid), [cpu_seconds(pid) for pid in subject.extra_pids]
    load = asyncio.run(run_load(subject.port, body, concurrency=concurrency, requests=requests, key=subject.key))
    if load.failed:
        raise SystemExit(f"{subject.name}: {load.failed} of {requests} requests failed")
    cpu = (cpu_seconds(subject.pid) - before) * 1000 / requests
    aside = sum(cpu_seconds(pid) - was for pid, was in zip(subject.extra_pids, extra, strict=True)) * 1000 / requests
    return load, cpu, aside


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def interval(values: list[float], rng: random.Random) -> list[float]:
    """A 95% bootstrap interval of the median over rounds."""
    medians = sorted(statistics.median(rng.choices(values, k=len(values))) for _ in range(2000))
    return [round(medians[50], 4), round(medians[1949], 4)]


def run(arguments: argparse.Namespace) -> dict:
    os.sched_setaffinity(0, {OTHER_CORE})
    rounds, requests = (3, 1500) if arguments.quick else (7, 4000)
    plain = json.dumps(BODY).encode()
    stream = json.dumps({**BODY, "stream": True}).encode()
    rng = random.Random(1)
    with ExitStack() as stack:
        mock_port = free_port()
        spawn(
            stack,
            [sys.executable, str(HERE / "speed/mock.py"), "--port", str(mock_port), "--chunks", str(CHUNKS)],
            OTHER_CORE,
        )
        await_port(mock_port)
        upstream = f"http://127.0.0.1:{mock_port}"
        subjects = [start_passthrough(stack, upstream), start_ours(stack, upstream)]
        if arguments.litellm:
            subjects.append(start_litellm(stack, upstream, arguments.litellm))
        direct = Subject("direct", mock_port, os.getpid(), 0.0)
        figures: dict = {
            subject.name: {
                "cpu": [],
                "aside": [],
                "p50": [],
                "p99": [],
                "rps": [],
                "chunks": [],
                "chunk_us": [],
                "rps64": [],
            }
            for subject in subjects
        }
        for subject in subjects:
            measure(subject, plain, 16, 300)
            measure(subject, stream, 4, 30)
        base_p50, base_p99 = [], []
        for _ in range(rounds):
            load = asyncio.run(run_load(direct.port, plain, concurrency=1, requests=requests // 4))
            base_p50.append(percentile(load.latencies, 0.5))
            base_p99.append(percentile(load.latencies, 0.99))
            for subject in subjects:
                slow = subject.name == "litellm_proxy"
                count = requests // 10 if slow else requests
                seen = figures[subject.name]
                load, _, _ = measure(subject, plain, 1, count // 4)
                seen["p50"].append(percentile(load.latencies, 0.5))
                seen["p99"].append(percentile(load.latencies, 0.99))
                load, cpu, aside = measure(subject, plain, 16, count)
                seen["cpu"].append(cpu)
                seen["aside"].append(aside)
                seen["rps"].append(count / load.seconds)
                load, _, _ = measure(subject, plain, 64, count // 2)
                seen["rps64"].append(count / 2 / load.seconds)
                streams = max(10, count // 20)
                load, cpu, _ = measure(subject, stream, 16, streams)
                seen["chunks"].append(load.events / load.seconds)
                seen["chunk_us"].append(cpu * 1000 / (CHUNKS + 3))
        result: dict = {"litellm_proxy": None}
        for subject in subjects:
            seen = figures[subject.name]
            result[subject.name] = {
                "cpu_ms": round(statistics.median(seen["cpu"]), 4),
                "cpu_ms_interval": interval(seen["cpu"], rng),
                "shipper_cpu_ms": round(statistics.median(seen["aside"]), 4),
                "added_p50_ms": round((statistics.median(seen["p50"]) - statistics.median(base_p50)) * 1000, 3),
                "added_p99_ms": round((statistics.median(seen["p99"]) - statistics.median(base_p99)) * 1000, 3),
                "rps": round(statistics.median(seen["rps"])),
                "rps_64": round(statistics.median(seen["rps64"])),
                "chunks_per_s": round(statistics.median(seen["chunks"])),
                "chunk_us": round(statistics.median(seen["chunk_us"]), 2),
                "rss_mb": round(rss_mb(subject.pid), 1),
                "start_s": round(subject.start_s, 2),
            }
        ratios = [a / b for a, b in zip(figures["ours"]["cpu"], figures["passthrough"]["cpu"], strict=True)]
        result["ratio_to_passthrough"] = round(statistics.median(ratios), 3)
        result["ratio_interval"] = interval(ratios, rng)
        result["too_noisy"] = result["passthrough"]["cpu_ms"] > 0.6
        result["rounds"], result["requests_per_round"] = rounds, requests
        return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and requests")
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")
    parser.add_argument("--litellm", help="the `litellm` executable of a virtual environment of its own")
    arguments = parser.parse_args()
    result = run(arguments)
    for name in ("passthrough", "ours", "litellm_proxy"):
        if result.get(name):
            print(f"{name:15}", "  ".join(f"{key} {value}" for key, value in result[name].items()))
    print(f"ours / passthrough, CPU: {result['ratio_to_passthrough']} {result['ratio_interval']}")
    if result["too_noisy"]:
        print("too noisy: the pass-through alone took more than 0.6 ms; the figures say nothing")
    if arguments.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
