import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from studio.server.guard import Guard
from studio.settings import is_loopback


def answer(method: str, headers: dict[str, str], *, host: str = "127.0.0.1", has_password: bool = False) -> int:
    async def hello(_request: object) -> PlainTextResponse:
        return PlainTextResponse("hello")

    guard = Middleware(Guard, host=host, has_password=has_password)
    app = Starlette(routes=[Route("/", hello, methods=["GET", "POST"])], middleware=[guard])
    return TestClient(app).request(method, "/", headers=headers).status_code


@pytest.mark.parametrize("host", ["127.0.0.1:7860", "localhost:7860", "LOCALHOST", "[::1]:7860"])
def test_this_machine_is_let_in_by_its_names(host):
    assert answer("GET", {"host": host}) == 200


@pytest.mark.parametrize("host", ["evil.example:7860", "127.0.0.1.evil.example", "192.168.1.5:7860", "", "[::1", "a b"])
def test_another_name_is_turned_away_on_a_studio_of_this_machine_only(host):
    assert answer("GET", {"host": host}) == 403


@pytest.mark.parametrize(
    ("host", "status"), [("192.168.1.5:7860", 200), ("[fe80::1]:7860", 200), ("evil.example", 403)]
)
def test_on_a_network_addresses_are_let_in_and_strange_names_are_not(host, status):
    assert answer("GET", {"host": host}, host="0.0.0.0") == status  # noqa: S104


def test_the_name_it_was_started_under_is_let_in():
    assert answer("GET", {"host": "studio.home:7860"}, host="studio.home") == 200


def test_with_a_password_every_name_is_let_in_because_the_cookie_belongs_to_one():
    assert answer("GET", {"host": "abc.share.example"}, has_password=True) == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "none"}, 200),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site", "origin": "http://127.0.0.1:3000"}, 403),
        ({"origin": "http://127.0.0.1:7860"}, 200),
        ({"origin": "http://127.0.0.1:3000"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "https://studio.example", "x-forwarded-host": "studio.example"}, 200),
    ],
)
@pytest.mark.parametrize("has_password", [False, True])
def test_a_write_must_come_from_the_studios_own_page_or_from_no_page(headers, status, has_password):
    assert answer("POST", {"host": "127.0.0.1:7860", **headers}, has_password=has_password) == status


def test_reading_across_origins_is_left_to_the_browser():
    assert answer("GET", {"host": "127.0.0.1", "origin": "https://evil.example"}) == 200


@pytest.mark.parametrize(("host", "expected"), [("127.0.0.1", True), ("127.9.9.9", True), ("0.0.0.0", False)])  # noqa: S104
def test_loopback(host, expected):
    assert is_loopback(host) is expected
