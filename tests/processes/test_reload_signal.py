"""A reload reaches every child of `serve`: the gateways for all of it, the shipper for its retention."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from harness.gateway.serve import Supervisor
from pointsman.config import Settings, load_text
from pointsman.processes import Child

TOML = '[[workers]]\nname = "a"\ndescription = "d"\nmodel = "m"\nbase_url = "http://127.0.0.1:9"\n'


class Recording(Child):
    """A child that only notes which signals it was sent."""

    def signal(self, number: int) -> None:
        self.command.append(str(number))


def test_a_reload_goes_to_gateways_and_shipper(tmp_path: Path) -> None:
    gateways, shipper = [Recording("one", []), Recording("two", [])], Recording("shipper", [])
    settings = Settings(tmp_path, 1, tmp_path / "pointsman.toml", {})
    supervisor = Supervisor(settings, load_text(TOML), gateways=gateways, shipper=shipper)
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        supervisor.take_signals()
        os.kill(os.getpid(), signal.SIGHUP)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert [child.command for child in (*gateways, shipper)] == [[str(int(signal.SIGHUP))]] * 3
    assert not supervisor.stopping.is_set()
