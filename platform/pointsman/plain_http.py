"""One blocking HTTP exchange for commands and probes: no redirects, no proxies, a bounded body.

The hot path uses `upstream.transport`. A redirect is not followed, so that a key goes to the address
it was meant for and nowhere else.
"""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

BODY_LIMIT = 4_000_000


@dataclass(frozen=True)
class Answer:
    """An HTTP answer; `body` is cut at the limit that was given."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class NoAnswer(Exception):
    """No connection, or no HTTP answer in time; the text says which."""


def exchange(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    timeout: float = 10.0,
    limit: int = BODY_LIMIT,
) -> Answer:
    """Sends one request and reads its answer. `timeout` is for each wait on the socket, in seconds."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection = kind(parts.hostname or "", parts.port, timeout=timeout)
        try:
            connection.request(method, target, body=body, headers=dict(headers or {}))
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read(limit))
        finally:
            connection.close()
    except TimeoutError:
        raise NoAnswer(f"no answer within {timeout:g} s") from None
    except http.client.HTTPException as error:
        raise NoAnswer(f"not an HTTP answer ({type(error).__name__})") from None
    except OSError as error:
        raise NoAnswer((error.strerror or str(error)).lower()) from None
    except ValueError:  # a header value with a line end, a port that is no number
        raise NoAnswer("the address or the key cannot be sent in an HTTP request") from None
