"""Code against tests: what passes, and what a program tries in vain. Where nothing confines, the refusal."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
import time

import pytest

from pointsman.errors import UserError
from pointsman.verifiers import verify
from pointsman.verifiers.code import code
from pointsman.verifiers.code_box import Box, boxes, find_box, works
from pointsman.verifiers.code_run import Limits, run

ADD = "```python\ndef add(a, b):\n    return a + b\n```"
SPEC = {"kind": "code", "tests": ["assert add(1, 2) == 3", "assert add(-1, 1) == 0"]}
WAYS = [box for box in boxes() if works(box)]
confined = pytest.mark.skipif(find_box() is None, reason="no program can be confined on this machine")


def test_a_machine_that_cannot_confine_runs_nothing(tmp_path):
    marker = tmp_path / "ran"
    with pytest.raises(UserError, match=r"cannot confine a program, so none is run; install bubblewrap"):
        code(SPEC, f"```python\nopen({str(marker)!r}, 'w')\n```", find=lambda: None)
    assert not marker.exists()


def test_the_verifier_refuses_exactly_where_nothing_confines():
    if find_box() is None:
        with pytest.raises(UserError, match="so none is run"):
            verify(SPEC, ADD)
    else:
        assert verify(SPEC, ADD) == 1.0


def test_a_way_that_does_not_confine_is_not_taken():
    assert works(Box("namespaces", ())) is False  # runs the program, but among this machine's files
    assert works(Box("namespaces", ("/nowhere/at-all",))) is False


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "verifier code: tests: expected a list of texts that is not empty, it is missing"),
        ({"tests": []}, "tests: expected a list of texts"),
        ({"tests": [" "]}, "tests: expected 1 to 200 tests that are not empty"),
        ({"tests": "assert 1", "timeout_s": 0}, "timeout_s: expected more than 0 and at most 60 seconds, got 0"),
        ({"tests": "assert 1", "timeout_s": 61}, "timeout_s: expected more than 0"),
        ({"tests": "assert 1", "memory_mb": 8}, "memory_mb: expected 32 to 4096, got 8"),
        ({"tests": "assert 1", "language": "perl"}, "language: expected python, got 'perl'"),
        ({"tests": "assert 1", "net": True}, "verifier code: net: no such key"),
    ],
)
def test_ill_formed_specs(spec, message):
    with pytest.raises(UserError) as caught:
        verify({"kind": "code", **spec}, ADD)
    assert message in str(caught.value)


@confined
@pytest.mark.parametrize(
    ("reply", "options", "score"),
    [
        (ADD, {}, 1),
        ("Sure!\n\n```py\nx = 1\n```\nBetter:\n" + ADD + "\nDone.", {}, 1),
        ("def add(a, b): return a + b", {}, 1),
        ("```python\ndef add(a, b):\n    return a + b\n", {}, 1),  # cut off before its fence closed
        (ADD.replace("+", "-"), {}, 0),
        (ADD.replace("return", "retrun"), {}, 0),
        ("```python\ndef add(a, b):\n    return 3\n```", {}, 0),
        ("```python\ndef add(a, b):\n    return 3\n```", {"partial": True}, 0.5),
        ("I do not know.", {}, 0),
        ("", {}, 0),
        ("```python\n```", {}, 0),
        ("```python\n\ud800\n```", {}, 0),
        ("```python\nimport sys\nsys.exit(0)\n```", {}, 0),
        ("```python\nimport os\nos._exit(0)\n```", {}, 0),
        ("```python\nprint('x' * 10_000_000)\ndef add(a, b): return a + b\n```", {}, 1),
    ],
)
def test_scores(reply, options, score):
    assert verify({**SPEC, **options}, reply) == score


@pytest.fixture(params=WAYS, ids=[box.way for box in WAYS])
def box(request):
    return request.param


def tried(box, program, test="assert True", *, seconds=2.0, megabytes=256):
    return run(box, program, [test], Limits(seconds, megabytes))


def test_no_socket_leaves_the_box(box):
    """A listener here, and the address of a resolver: neither can be reached, by any family."""
    met = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)

        def listen():
            with contextlib.suppress(TimeoutError):
                met.append(server.accept())

        thread = threading.Thread(target=listen)
        thread.start()
        port = server.getsockname()[1]
        program = f"import socket\ns = socket.create_connection(('127.0.0.1', {port}), 1)\ns.sendall(b'hello')"
        ran = tried(box, program)
        thread.join()
        server.settimeout(0.2)
        listen()
    assert ran.passed == (False,) and ("refused" in str(ran.why) or "unreachable" in str(ran.why))
    assert met == []


def test_a_secret_outside_cannot_be_read(box, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("canary-4711")
    secret.chmod(0o644)
    files = [str(secret), __file__, "/etc/passwd", "/etc/hostname", f"/proc/{os.getpid()}/environ"]
    program = (
        f"found = []\nfor path in {files!r}:\n  try: found.append(open(path).read())\n  except OSError: pass\n"
        # The interpreter may live in somebody's home: then the way to it is there, and nothing beside it.
        "import os, sys\nbeside = [os.path.join(here, name) for top in ('/root', '/home', '/tmp', '/var', '/srv')\n"
        "  for here, _, names in os.walk(top) for name in names if not here.startswith(sys.base_prefix)]"
    )
    assert tried(box, program, "assert (found, beside) == ([], []), (found, beside)").why is None


def test_nothing_of_our_environment_and_processes_is_visible(box, monkeypatch):
    monkeypatch.setenv("POINTSMAN_TEST_SECRET", "canary-4712")
    seen = tried(box, "import os", "assert 'canary' not in repr(os.environ)")
    assert seen.passed == (True,)
    others = f"import os\nassert not os.path.exists('/proc/{os.getpid()}/cmdline') or " + (
        f"b'pytest' not in open('/proc/{os.getpid()}/cmdline', 'rb').read()"
    )
    assert tried(box, others).passed == (True,)


def test_nothing_can_be_written_but_the_box_itself(box, tmp_path):
    places = ("/usr/x", "/x", "/etc/x", "/bin/x", str(tmp_path / "x"), "/proc/sys/kernel/hostname")
    program = f"wrote = []\nfor path in {places!r}:\n  try: open(path, 'w').write('x'); wrote.append(path)\n"
    assert tried(box, program + "  except OSError: pass", "assert wrote == [], wrote").why is None
    assert list(tmp_path.iterdir()) == []
    assert tried(box, "open('/box/x', 'w').write('x')", "assert open('x').read() == 'x'").passed == (True,)
    assert tried(box, "import os", "assert os.listdir('.') == []").passed == (True,)  # nothing stays behind
    assert tried(box, "open('/box/x', 'w').write('x' * 50_000_000)").passed == (False,)


def test_a_fork_bomb_is_contained(box):
    bomb = "import os\nwhile True:\n  try:\n    os.fork()\n  except BlockingIOError:\n    pass"
    before = _processes()
    assert tried(box, bomb, seconds=0.3).passed == (False,)
    counted = tried(
        box,
        "import os, time\nn = 0\ntry:\n  while n < 500:\n    if os.fork() == 0: time.sleep(60)\n    n += 1\n"
        "except BlockingIOError: pass",
        "assert 0 < n < 40, n",
    )
    assert counted.passed == (True,), counted.why
    assert _gone(before)


def test_a_program_that_outlives_its_time_dies_with_its_children(box):
    stubborn = (
        "import os, signal, time\n"
        "for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)\n"
        "if os.fork() == 0:\n  os.setsid()\n"
        "while True:\n  try: time.sleep(60)\n  except BaseException: pass"
    )
    before = _processes()
    ran = tried(box, stubborn, seconds=0.2)
    assert (ran.passed, ran.why) == ((False,), "the time was up")
    assert _gone(before)
    busy = tried(box, "while True: pass", seconds=0.2)
    assert (busy.passed, busy.why) == ((False,), "the time was up")
    left_behind = tried(box, "import os, time\nif os.fork() == 0:\n  os.setsid(); time.sleep(600); os._exit(0)")
    assert left_behind.passed == (True,)
    assert _gone(before)


def test_memory_output_and_the_report_are_bounded(box):
    assert tried(box, "x = bytearray(2_000_000_000)").why == "MemoryError: "
    assert tried(box, "x = bytearray(100_000_000)", megabytes=256).passed == (True,)
    flood = (
        "import os\nfor fd in range(3, 30):\n  try:\n    while True: os.write(fd, b'x' * 65536)\n  except OSError: pass"
    )
    assert tried(box, flood).passed == (False,)
    forged = 'import os\nfor fd in range(3, 30):\n  try: os.write(fd, b\'{"token": "x", "passed": [true]}\')\n'
    assert tried(box, forged + "  except OSError: pass\nos._exit(0)").passed == (False,)
    assert tried(box, "import ctypes\nctypes.string_at(0)").passed == (False,)


def test_no_privilege_can_be_got(box):
    caps = "line = next(l for l in open('/proc/self/status') if l.startswith('CapEff'))"
    assert tried(box, caps, "assert int(line.split()[1], 16) == 0").passed == (True,)
    mount = "import ctypes\nlibc = ctypes.CDLL(None)"
    assert tried(box, mount, "assert libc.mount(b'none', b'/box', b'tmpfs', 0, None) == 0").passed == (False,)
    raised = "import resource\nresource.setrlimit(resource.RLIMIT_NPROC, (10_000, 10_000))"
    assert tried(box, raised).passed == (False,)


def _processes() -> set[str]:
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in listed.splitlines() if "code_driver" in line or "resource.RLIMIT_AS" in line}


def _gone(before: set[str]) -> bool:
    """Whether every process of a box has gone: the kernel takes a moment to end a whole tree."""
    until = time.monotonic() + 20
    while _processes() - before:
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True
