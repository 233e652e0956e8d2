"""A gateway in front of a language model's endpoint, both over real sockets, and the real client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.server.gateway.upstream import Upstream, echo, serve_app

pytest.importorskip("uvicorn")
openai = pytest.importorskip("openai")
gateways = pytest.importorskip("allonym.server.gateway", exc_type=ImportError)


@pytest.fixture(scope="session")
def _upstream() -> Iterator[Upstream]:
    running = Upstream()
    yield running
    running.close()


@pytest.fixture
def upstream(_upstream: Upstream) -> Upstream:
    """The endpoint, forgetful and echoing."""
    _upstream.behaviour = echo
    _upstream.asked.clear()
    _upstream.raw.clear()
    return _upstream


@pytest.fixture(scope="session")
def gateway(_upstream: Upstream, untagged_reversible: str) -> Iterator[str]:
    """A gateway's address; its policy is ``reversible`` without the tagger."""
    with serve_app(
        gateways.create_app(
            gateways.Settings(
                upstream=_upstream.url, policy=untagged_reversible, internal_tools=("send_mail", "send", "f")
            )
        )
    ) as address:
        yield address


@pytest.fixture(scope="session")
def untagged_reversible(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("policies") / "reversible-untagged.toml"
    detectors = '["rules", "spoken", "lexicon", "speakers"]'
    path.write_text(
        f'extends = "reversible"\n[detect]\ndetectors = {detectors}\n[dictionary]\nPERSON = ["Ada Brook", "Zoë Quill"]\n',
        encoding="utf-8",
    )
    return str(path)


@pytest.fixture
def client(gateway: str, upstream: Upstream) -> Iterator[Any]:
    """The real client, pointed at the gateway."""
    with openai.OpenAI(base_url=f"{gateway}/v1", api_key="sk-test", max_retries=0) as made:
        yield made


@pytest.fixture
def gateway_with(upstream: Upstream, untagged_reversible: str) -> Iterator[Callable[..., str]]:
    """Starts a gateway with other settings and says its address."""
    from contextlib import ExitStack

    with ExitStack() as stack:

        def start(*, vault: Any = None, key: Any = None, **settings: Any) -> str:
            made = gateways.Settings(**{"upstream": upstream.url, "policy": untagged_reversible, **settings})
            return stack.enter_context(serve_app(gateways.create_app(made, vault=vault, key=key)))

        yield start
