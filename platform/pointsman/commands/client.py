"""A small client of the local gateway, with the key that `pointsman up` wrote for the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from pointsman.errors import PointsmanError, UserError

if TYPE_CHECKING:
    from pointsman.config import Config, Settings

TIMEOUT = 30.0
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


class GatewayError(PointsmanError):
    """The gateway is not there, or cannot do it now."""


@dataclass(frozen=True)
class Reply:
    """A gateway's answer: its HTTP status and its JSON."""

    status: int
    content: dict[str, Any]


@dataclass(frozen=True)
class GatewayClient:
    """One gateway's address (no path) and the key to use there."""

    address: str
    key: str | None = None

    @classmethod
    def of(cls, settings: Settings, config: Config | None) -> GatewayClient:
        """The gateway that these settings and this configuration describe."""
        return cls(gateway_address(settings, config), admin_key(settings))

    def get(self, path: str) -> Reply:
        """Whatever the status. Raises `GatewayError` where no gateway answers."""
        return self._send("GET", path, None)

    def post(self, path: str, content: Any) -> Reply:
        """A 2xx answer. A refusal raises `UserError`, a gateway that cannot `GatewayError`."""
        reply = self._send("POST", path, msgspec.json.encode(content))
        if reply.status < 300:
            return reply
        message = _message(reply)
        if reply.status >= 500 or reply.status in (408, 429):
            raise GatewayError(f"the gateway answered {reply.status}: {message}")
        raise UserError(message)

    def readiness(self) -> Reply | None:
        """What `/readyz` says, None where no gateway answers."""
        try:
            return self.get("/readyz")
        except GatewayError:
            return None

    def _send(self, method: str, path: str, body: bytes | None) -> Reply:
        from pointsman.plain_http import NoAnswer, exchange  # http.client takes 17 ms, and help needs none of it

        headers = {"content-type": "application/json"} if body is not None else {}
        if self.key:
            headers["authorization"] = f"Bearer {self.key}"
        try:
            answer = exchange(method, self.address + path, headers=headers, body=body, timeout=TIMEOUT)
        except NoAnswer as error:
            raise GatewayError(
                f"no gateway answers at {self.address} ({error}); start it with `pointsman up` or `pointsman serve`"
            ) from None
        try:
            content = msgspec.json.decode(answer.body)
        except msgspec.MsgspecError:
            content = None
        if not isinstance(content, dict) and answer.status >= 500:
            raise GatewayError(f"the gateway answered {answer.status}; its own log says why")
        if not isinstance(content, dict):
            raise GatewayError(f"what answers at {self.address} is no Pointsman gateway (HTTP {answer.status})")
        return Reply(answer.status, content)


def gateway_address(settings: Settings, config: Config | None) -> str:
    """`http://HOST:PORT` of the gateway; one that listens everywhere is asked on loopback."""
    host = config.gateway.host if config else "127.0.0.1"
    port = (config.gateway.port if config else None) or settings.port
    host = EVERYWHERE.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def admin_key(settings: Settings) -> str | None:
    """The key that `pointsman up` wrote into the data folder, None where there is none."""
    try:
        return (settings.home / "admin.key").read_text(encoding="utf-8").strip() or None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"{settings.home / 'admin.key'}: cannot be read: {error.strerror}") from None


def _message(reply: Reply) -> str:
    error = reply.content.get("error")
    message = error.get("message") if isinstance(error, dict) else None
    return message if isinstance(message, str) else f"HTTP {reply.status}"
