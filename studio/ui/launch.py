"""Starts the page: which port, which password, which link, and what gradio may and may not do."""

import os
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NoAnswer
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.routing import BaseRoute

from studio.engine_room import EngineRoom
from studio.errors import SettingError
from studio.server.guard import Guard
from studio.server.jobs import SpeechJobs
from studio.server.lab_jobs import LabJobs
from studio.server.model_shelf import ModelShelf
from studio.server.routes import studio_routes
from studio.settings import Settings, assets_dir, is_loopback

if TYPE_CHECKING:
    import gradio as gr
    from gradio.themes import Base

USER = "studio"
DEFAULT_PORT = 7860
MAX_CLIP_BYTES = 64 << 20
STYLES = ("styles", "desk", "work", "takes", "voice", "models", "lab", "lab-charts", "narrow")
"""The page's style sheets in assets, in order."""
_PORTS_TRIED = 50
_TUNNEL_SECONDS = 40.0


@dataclass(frozen=True, kw_only=True)
class LaunchOptions:
    """How the page is offered. A share link is public, so it needs a password."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    password: str | None = None
    share: bool = False
    open_browser: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.port < 65536:
            raise SettingError("port", self.port, "choose a number from 1 to 65535.")
        if self.password is not None and not self.password.strip():
            raise SettingError("password", self.password, "choose one with letters or digits in it.")
        if self.share and self.password is None:
            raise SettingError("share", "a public link without a password", "add --password.")


class RunningStudio:
    """The page while it is up."""

    def __init__(
        self, blocks: "gr.Blocks", jobs: SpeechJobs, shelf: ModelShelf, lab: LabJobs, share_url: str | None
    ) -> None:
        self._blocks, self._jobs, self._shelf, self._lab = blocks, jobs, shelf, lab
        assert blocks.local_url is not None, "launched"
        self.url: str = blocks.local_url
        self.port: int = blocks.server_port
        self.share_url = share_url

    def wait(self) -> None:
        """Blocks until Ctrl-C, then closes."""
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """Stops what is being spoken, saves it as partial, stops downloads and the lab, and gives the port back."""
        self._jobs.close()
        self._shelf.close()
        self._lab.close()
        self._blocks.close(verbose=False)


def launch(room: EngineRoom, settings: Settings, options: LaunchOptions, say: Callable[[str], None]) -> RunningStudio:
    """Starts the page in the background; `say` gets the lines meant for the terminal."""
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    os.environ["GRADIO_TEMP_DIR"] = str(settings.data_dir / "uploads")  # /tmp/gradio may be another user's
    from studio.ui.page import build_page, theme  # gradio reads the environment when it is imported

    jobs = SpeechJobs()
    shelf = ModelShelf(room, jobs, settings)
    lab = LabJobs(room, settings)
    blocks = build_page(room, settings)
    port = free_port(options.host, options.port)
    if port != options.port:
        say(f"Port {options.port} is in use, so the page is on {port}.")
    routes = studio_routes(room, jobs=jobs, shelf=shelf, lab=lab, page_dir=assets_dir(), may_enter=may_enter)
    _serve(blocks, routes, options, port, theme=theme())
    say(f"Solo Studio is on {blocks.local_url}")
    if not is_loopback(options.host) and options.password is None:
        say("Everyone on this network can use it. Add --password to keep it to yourself.")
    share_url = share_link(options.host, port, blocks.share_token, say) if options.share else None
    return RunningStudio(blocks, jobs, shelf, lab, share_url)


def _serve(blocks: "gr.Blocks", routes: list[BaseRoute], options: LaunchOptions, port: int, *, theme: "Base") -> None:
    page_dir = assets_dir()
    guard = Middleware(Guard, host=options.host, has_password=options.password is not None)
    blocks.queue(default_concurrency_limit=8, api_open=False)
    blocks.launch(
        server_name=options.host,
        server_port=port,
        auth=[(USER, options.password)] if options.password is not None else None,
        auth_message=f"The user name is {USER}.",
        app_kwargs={"routes": routes, "middleware": [guard]},
        theme=theme,
        css_paths=[page_dir / f"{name}.css" for name in STYLES],
        head=_HEAD,
        favicon_path=page_dir / "icon.svg",
        max_file_size=MAX_CLIP_BYTES,
        allowed_paths=[],
        footer_links=[],
        inbrowser=options.open_browser,
        share=False,
        ssr_mode=False,
        mcp_server=False,
        pwa=False,
        run_history=False,
        num_workers=0,
        prevent_thread_lock=True,
        quiet=True,
    )


_HEAD = '<meta name="color-scheme" content="light dark"><meta name="referrer" content="same-origin">'


def may_enter(request: Request) -> bool:
    """Whether gradio's login, where there is one, knows this browser: gradio protects no route but its own."""
    app: Any = request.app
    if app.auth is None:
        return True
    names = (f"access-token-{app.cookie_id}", f"access-token-unsecure-{app.cookie_id}")
    return any(app.tokens.get(request.cookies.get(name)) is not None for name in names)


def free_port(host: str, wanted: int) -> int:
    """The wanted port, or the next that nobody listens on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for port in range(wanted, min(wanted + _PORTS_TRIED, 65536)):
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            if os.name == "posix":  # elsewhere this option would let two programs share a port
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host.strip("[]"), port))
            except PermissionError as error:
                raise SettingError("port", port, "this system keeps it for itself; choose one above 1023.") from error
            except socket.gaierror as error:
                raise SettingError("host", host, "give an address of this machine, such as 127.0.0.1.") from error
            except OSError:
                continue
            return port
    raise SettingError("port", wanted, f"it and the {_PORTS_TRIED - 1} after it are in use; choose another.")


def share_link(
    host: str, port: int, token: str, say: Callable[[str], None], *, timeout: float = _TUNNEL_SECONDS
) -> str | None:
    """A public address for the page, or None with one line said where none can be made; the page goes on locally.

    Not gradio's own `share=True`, under which every page loads its script from another machine and is blank offline.
    """
    from gradio.networking import setup_tunnel

    answer: Future[str] = Future()

    def dig() -> None:
        try:
            answer.set_result(setup_tunnel(host, port, token, None, None))
        except (OSError, RuntimeError, ValueError) as error:
            answer.set_exception(error)

    threading.Thread(target=dig, daemon=True, name="share link").start()
    try:
        url = urlsplit(answer.result(timeout))._replace(scheme="https").geturl()
    except (NoAnswer, OSError, RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines()
        say(f"No share link could be made ({reason[0] if reason else 'no answer in time'}); the page works locally.")
        return None
    say(f"Everyone with the password can open {url} (user name {USER}).")
    return url
