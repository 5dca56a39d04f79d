import socket
import threading
from collections.abc import Iterator

import pytest

from studio.errors import SettingError
from studio.ui.launch import LaunchOptions, free_port, share_link


@pytest.fixture
def taken() -> Iterator[socket.socket]:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield holder


def test_a_port_in_use_gives_the_next_one(taken):
    port = taken.getsockname()[1]
    assert port < free_port("127.0.0.1", port) < port + 50


def test_a_free_port_is_taken_as_it_is(taken):
    port = taken.getsockname()[1]
    taken.close()
    assert free_port("127.0.0.1", port) == port


def test_a_host_that_is_not_of_this_machine_is_a_sentence():
    with pytest.raises(SettingError, match="no-such-host"):
        free_port("no-such-host.invalid", 7860)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"port": 0}, "port"),
        ({"port": 70000}, "port"),
        ({"password": "  "}, "password"),
        ({"share": True}, "--password"),
    ],
)
def test_options_that_cannot_be_used_are_a_sentence(options, words):
    with pytest.raises(SettingError, match=words):
        LaunchOptions(**options)


PLACE = ("127.0.0.1", 7860, "token")


def test_a_share_link_is_said_with_the_user_name(monkeypatch):
    asked = []
    monkeypatch.setattr("gradio.networking.setup_tunnel", lambda *given: asked.append(given) or "http://abc.example/")
    said: list[str] = []
    assert share_link(*PLACE, said.append) == "https://abc.example/"
    assert asked == [("127.0.0.1", 7860, "token", None, None)]
    assert len(said) == 1
    assert "user name studio" in said[0]


def failing(*_given: object) -> str:
    raise RuntimeError("Could not reach it.\nA long log")


def test_without_a_link_one_line_is_said_and_the_page_goes_on(monkeypatch):
    monkeypatch.setattr("gradio.networking.setup_tunnel", failing)
    said: list[str] = []
    assert share_link(*PLACE, said.append) is None
    assert said == ["No share link could be made (Could not reach it.); the page works locally."]


def test_a_tunnel_that_never_answers_is_not_waited_for(monkeypatch):
    release = threading.Event()
    monkeypatch.setattr("gradio.networking.setup_tunnel", lambda *_given: str(release.wait(10)))
    said: list[str] = []
    assert share_link(*PLACE, said.append, timeout=0.05) is None
    release.set()
    assert "no answer in time" in said[0]
