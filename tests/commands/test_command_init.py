"""`pointsman init`: what it finds, what it writes, and that the file always passes `check`."""

from __future__ import annotations

import json

import pytest

from pointsman.commands.finding import LocalServer, find_offers
from pointsman.commands.init import text_for
from pointsman.commands.providers import PROVIDERS
from pointsman.commands.writing import config_text, router_offer
from pointsman.config import load_config, load_text

CLOSED = LocalServer("Ollama", "http://127.0.0.1:1/v1")


def models(*ids, **more):
    return 200, {"object": "list", "data": [{"id": name, "object": "model", **more} for name in ids]}


@pytest.fixture
def ollama(fake_server):
    """Where the fake server stands for Ollama."""
    return LocalServer("Ollama", f"{fake_server.address}/v1")


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.api_key_env)
def test_each_providers_key_gives_a_file_that_is_right(provider):
    offers = find_offers({provider.api_key_env: "x"}, servers=[CLOSED])
    config = load_text(config_text(offers))
    assert [worker.name for worker in config.workers] == [model.name for model in provider.models]
    assert {worker.api_key_env for worker in config.workers} == {provider.api_key_env}
    assert config.router.api_key_env == provider.api_key_env
    assert config.router.model == provider.models[-1].model
    assert config.router.default == provider.models[0].name
    assert all(worker.price is None for worker in config.workers)


def test_all_providers_at_once_have_names_of_their_own():
    environment = {provider.api_key_env: "x" for provider in PROVIDERS}
    config = load_text(config_text(find_offers(environment, servers=[])))
    assert len(config.workers) == sum(len(provider.models) for provider in PROVIDERS)


def test_an_empty_variable_is_no_key():
    assert find_offers({"OPENAI_API_KEY": ""}, servers=[]) == []


def test_the_keys_value_is_never_written():
    offers = find_offers({"OPENAI_API_KEY": "sk-very-secret"}, servers=[])
    assert "sk-very-secret" not in config_text(offers)


def test_a_local_servers_chat_models_become_workers(fake_server, ollama):
    fake_server.answers["GET /v1/models"] = models(
        "llama3.2:latest", "qwen2.5-coder:7b", "nomic-embed-text:latest", "/models/Mixtral-8x7B", "default"
    )
    config = load_text(config_text(find_offers({}, [ollama])))
    assert [(worker.name, worker.model) for worker in config.workers] == [
        ("llama3.2", "llama3.2:latest"),
        ("qwen2.5-coder:7b", "qwen2.5-coder:7b"),
        ("mixtral-8x7b", "/models/Mixtral-8x7B"),
        ("local-default", "default"),
    ]
    assert {worker.base_url for worker in config.workers} == {ollama.base_url}
    assert {worker.api_key_env for worker in config.workers} == {None}
    assert config.workers[1].description.startswith("Writing, explaining and fixing code.")
    assert config.router.model == "default"
    assert config.router.deadline == 5


def test_a_window_that_the_server_names_is_written(fake_server):
    fake_server.answers["GET /v1/models"] = models("m", max_model_len=4096)
    offers = find_offers({}, [LocalServer("vLLM", f"{fake_server.address}/v1")])
    assert load_text(config_text(offers)).workers[0].context_window == 4096


def test_two_servers_with_one_model_give_two_names(fake_server, ollama):
    fake_server.answers["GET /v1/models"] = models("m")
    offers = find_offers({}, [ollama, LocalServer("vLLM", f"{fake_server.address}/v1")])
    assert [offer.name for offer in offers] == ["m", "m-2"]
    assert [offer.source for offer in offers] == ["Ollama on this machine", "vLLM on this machine"]


def test_a_server_gives_at_most_a_few_models(fake_server, ollama):
    fake_server.answers["GET /v1/models"] = models(*(f"m{number}" for number in range(40)))
    assert len(find_offers({}, [ollama])) == 6


@pytest.mark.parametrize(
    "answer",
    [
        (200, b"<html>hello</html>"),
        (200, {"data": "no list"}),
        (200, {"data": [{"id": 7}, "m", None, {"id": 'quote"\n[evil]'}, {"id": "\u00e9\U0001f600"}, {"id": ""}]}),
        (404, {}),
        (302, b""),
    ],
)
def test_something_else_on_the_port_gives_no_worker(fake_server, ollama, answer):
    fake_server.answers["GET /v1/models"] = answer
    assert find_offers({}, [ollama]) == []


def test_a_hostile_model_name_cannot_write_another_key(fake_server, ollama):
    fake_server.answers["GET /v1/models"] = models('a"b\\c')
    config = load_text(config_text(find_offers({}, [ollama])))
    assert config.workers[0].model == 'a"b\\c'
    assert config.workers[0].name == "a-b-c"


def test_the_router_is_the_first_sources_quick_model(fake_server, ollama):
    fake_server.answers["GET /v1/models"] = models("m")
    offers = find_offers({"OPENAI_API_KEY": "x"}, [ollama])
    assert router_offer(offers).model == "gpt-5-mini"


def test_with_nothing_found_the_sandbox_is_written():
    config = load_text(text_for([], seed=3, sandbox_port=8792))
    assert config.sandbox is not None
    assert config.sandbox.seed == 3
    assert config.router.base_url == "http://127.0.0.1:8792/v1"


def test_the_command_writes_the_sandbox_and_check_passes(run, tmp_path):
    result = run("init", "--sandbox", "--seed", 4)
    file = tmp_path / "pointsman.toml"
    assert result.exit_code == 0
    assert result.stdout == f"wrote {file}: the sandbox, a simulation that needs no key\n"
    assert load_config(file).sandbox.seed == 4
    assert run("check").exit_code == 0


def test_the_command_lists_the_workers_of_a_key(run, tmp_path):
    result = run("init", "--json", MISTRAL_API_KEY="x")
    printed = json.loads(result.stdout)
    assert printed["sandbox"] is False
    assert printed["workers"][0] == {"name": "mistral-large", "model": "mistral-large-latest", "source": "Mistral"}
    assert load_config(tmp_path / "pointsman.toml").workers[0].name == "mistral-large"


def test_a_file_that_exists_is_kept_unless_forced(run, tmp_path):
    file = tmp_path / "pointsman.toml"
    file.write_text("mine")
    result = run("init", "--sandbox")
    assert result.exit_code == 2
    assert result.stderr == f"{file} exists already; --force replaces it, --config FILE writes another\n"
    assert file.read_text() == "mine"
    assert run("init", "--sandbox", "--force").exit_code == 0
    assert file.read_text() != "mine"


def test_a_folder_that_is_not_there_is_a_mistake(run, tmp_path):
    result = run("init", "--sandbox", "--config", tmp_path / "none" / "pointsman.toml")
    assert result.exit_code == 2
    assert "cannot be written: No such file or directory" in result.stderr
