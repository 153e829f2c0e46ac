"""Doctor's checks of what is elsewhere: the gateway, the keys of providers, workers' addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pointsman.commands.client import GatewayClient, GatewayError, Reply
from pointsman.commands.findings import Finding, State
from pointsman.errors import ConfigError
from pointsman.upstream.anthropic import headers as anthropic_headers
from pointsman.upstream.listing import Listing, NoAnswer, list_models

if TYPE_CHECKING:
    from pointsman.config import Config, Settings
    from pointsman.words import WorkerApi

PARALLEL = 8


@dataclass(frozen=True)
class Address:
    """One place to ask, with one key. `variable` names the key, `header` is what carries it."""

    base_url: str
    variable: str | None = None
    header: str = "authorization"
    api: WorkerApi = "openai"


def gateway(settings: Settings, config: Config) -> Finding:
    """What `/readyz` says, and whether it serves the file as it is now."""
    from pointsman.config.load import config_hash

    client = GatewayClient.of(settings, config)
    try:
        reply = client.get("/readyz")
    except GatewayError as error:
        return Finding("gateway", "warn", str(error).partition(";")[0], "`pointsman up` or `pointsman serve`")
    return _readiness(client.address, reply, config_hash(config))


def _readiness(address: str, reply: Reply, wanted: str) -> Finding:
    content = reply.content
    message = f"{address} is {content.get('status', 'there')}, generation {content.get('generation', 'unknown')}"
    if reply.status != 200:
        return Finding("gateway", "fail", message, "see its log; GET /readyz says what is away")
    journal = content.get("journal")
    if isinstance(journal, dict) and journal.get("rows_lost"):
        return Finding("gateway", "fail", f"{message}; it has lost {journal['rows_lost']} rows", "see its log")
    if content.get("database") != "ok":
        advice = "the log waits on disk until the database is back"
        return Finding("gateway", "warn", f"{message}; its database is {content.get('database')}", advice)
    if content.get("configuration") != wanted:
        return Finding("gateway", "warn", f"{message}; it serves an older configuration", "`pointsman reload`")
    return Finding("gateway", "ok", message)


def keys(settings: Settings, config: Config) -> Iterator[Finding]:
    """Every variable that the file names is set here. Values are never shown."""
    from pointsman.config.advice import variable_users

    for variable, where in variable_users(config).items():
        if settings.secret(variable):
            yield Finding("key", "ok", f"${variable} is set")
        else:
            yield Finding("key", "fail", f"${variable} is not set ({', '.join(where)})", f"export {variable}=…")


def extras(config: Config, *, find: Callable[[str], object | None] = find_spec) -> Iterator[Finding]:
    """The optional parts that the file asks for are installed, as far as `find` finds their modules."""
    from pointsman.extras import require_extras

    try:
        require_extras(config, find=find)
    except ConfigError as error:
        for problem in error.problems:
            _, key, said = problem.split(": ", 2)
            yield Finding("extra", "fail", f"{key}: {said.partition(', expected ')[0]}", said.partition("expected ")[2])


def workers(settings: Settings, config: Config, timeout: float) -> list[Finding]:
    """Every address of workers and of the router LLM, asked once for its models; a few at a time."""
    found = addresses(config)
    local = config.sandbox is not None
    with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
        return list(pool.map(lambda item: _ask(settings, item[0], item[1], timeout, local), found.items()))


def addresses(config: Config) -> dict[Address, dict[str, str]]:
    """Where models are said to be, and who is there: {address: {worker or "router LLM": model}}."""
    found: dict[Address, dict[str, str]] = {}
    router = config.router
    if router.base_url and router.model:
        found.setdefault(Address(router.base_url, router.api_key_env), {})["router LLM"] = router.model
    for worker in config.workers:
        api = worker.quirks.api
        if api == "litellm":
            continue  # only the SDK knows how that provider lists its models
        header = worker.quirks.auth_header.lower()
        places = [(worker.base_url, worker.api_key_env)] if worker.base_url else []
        for base_url, variable in [*places, *((e.base_url, e.api_key_env) for e in worker.endpoints)]:
            found.setdefault(Address(base_url, variable, header, api), {})[worker.name] = worker.model
    return found


def _ask(settings: Settings, address: Address, users: dict[str, str], timeout: float, sandbox: bool) -> Finding:
    key = settings.secret(address.variable)
    headers = dict(anthropic_headers()) if address.api == "anthropic" else {}
    if key:
        headers[address.header] = f"Bearer {key}" if address.header == "authorization" else key
    try:
        return _listed(address, users, list_models(address.base_url, headers, timeout=timeout))
    except NoAnswer as error:
        start = "`pointsman up` or `pointsman sandbox serve` starts the sandbox"
        advice = start if sandbox else "is the server running, and base_url right?"
        return _finding("fail", f"{address.base_url}: {error}", users, advice)


def _listed(address: Address, users: dict[str, str], listing: Listing) -> Finding:
    status = listing.status
    if status in (401, 403):
        advice = f"is ${address.variable} right?" if address.variable else "name its key in api_key_env"
        return _finding("fail", f"{address.base_url} refuses the key (HTTP {status})", users, advice)
    if status >= 500:
        return _finding("fail", f"{address.base_url} answers HTTP {status}", users, "see that server's log")
    if listing.models is None:
        return _finding("ok", f"{address.base_url} answers, without a list of models (HTTP {status})", users)
    ids = [model.id for model in listing.models]
    absent = list(dict.fromkeys(model for model in users.values() if not _has(ids, model)))
    if not absent:
        return _finding("ok", f"{address.base_url} has every model that is named", users)
    near = ", ".join(ids[:5]) + (", …" if len(ids) > 5 else "")
    message = f"{address.base_url} does not list {', '.join(absent)}"
    return _finding("warn", message, users, f"it lists {near}" if ids else "it lists no model")


def _finding(state: State, message: str, users: dict[str, str], advice: str = "") -> Finding:
    return Finding("models", state, f"{message} ({', '.join(users)})", advice)


def _has(ids: list[str], model: str) -> bool:
    """Whether a model is listed; some servers put a folder such as `models/` before the id."""
    return any(listed == model or listed.endswith(f"/{model}") for listed in ids)
