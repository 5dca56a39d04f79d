"""`ui`: the studio's page, on this machine or shared behind a password."""

from functools import partial
from typing import Annotated

import typer

from studio.commands.session import session_of
from studio.commands.takes import keep_to_bound


def ui(
    context: typer.Context,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for the whole network.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Where to listen; the next free one where it is taken.")] = 7860,
    share: Annotated[bool, typer.Option("--share", help="Make a public link; needs --password.")] = False,
    password: Annotated[str | None, typer.Option(help="Ask for it, and for the user name studio.")] = None,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Open the page; Ctrl-C ends it."""
    from studio.engine_room import EngineRoom
    from studio.ui.launch import LaunchOptions, launch

    options = LaunchOptions(host=host, port=port, share=share, password=password, open_browser=browser)
    session = session_of(context)
    say = partial(print, flush=True)
    say("Loading the voice model.")
    room = EngineRoom(session.open_library(), partial(session.assemble, session.settings))
    keep_to_bound(session, say)
    launch(room, session.settings, options, say).wait()
    raise typer.Exit(130)
