"""The page's layout and what its buttons do. Speech does not pass through gradio: assets/player.js fetches it."""

from html import escape
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.themes import Base, Font

from studio.errors import ClipError, SettingError, StudioError
from studio.server.routes import PREFIX
from studio.store.voice_records import VoiceDetails
from studio.synthesis import Synthesizer
from studio.ui.cards import take_list, voice_list

EXAMPLE = (
    "The harbour was quiet before sunrise. Then the gulls began, one by one, and the whole town was awake. "
    "Nobody remembered who had rung the bell."
)
TAKES_SHOWN = 20
_NO_TAKES = "Nothing spoken yet. Choose a voice, type a sentence, press Speak."
_GONE = "The voice that was selected here has been removed. Choose another one."
_LIST = "window.studioPage.list(element, props, watch, trigger) // sends 'choose', 'remove' and 'older'"
_SPEAK = "(script, speed, seed) => { window.studioPage.speak(script, speed, seed); return []; }"
_STOP = "() => { window.studioPlayer.stop(); return []; }"


class Page:
    """The listeners of the page. They hold nothing of a visitor: what is chosen lives in the visitor's browser."""

    def __init__(self, synthesizer: Synthesizer) -> None:
        self._synthesizer = synthesizer

    def open(self, selected: str | None) -> tuple[Any, Any, str | None]:
        """Voices, takes and the voice that is selected: the stored one, or the first on a first visit."""
        voices = self._synthesizer.voices.list()
        known = {voice.id for voice in voices}
        if not selected:
            selected = next((voice.id for voice in voices), None)
        gone = selected is not None and selected not in known
        selected = None if gone else selected
        shown = self._voices(selected) | ({"note": _GONE} if gone else {})
        return shown, self._takes(TAKES_SHOWN), selected

    def refresh(self, selected: str | None) -> tuple[Any, Any]:
        return self._voices(selected), self._takes(TAKES_SHOWN)

    def choose(self, event: gr.EventData) -> str:
        return self._asking(lambda: self._synthesizer.voices.get(_identifier(event)).id)

    def add_voice(self, clip: str | None, name: str, transcript: str) -> tuple[Any, Any, Any, Any, str]:
        """Makes a voice of the dropped or recorded clip, selects it and empties the form."""
        voice = self._asking(lambda: self._add(clip, name, transcript))
        kept = f"“{voice.name}” is selected. Its codes are kept and will not be encoded again."
        gr.Info(escape(kept), title="New voice")
        return self._voices(voice.id), None, "", "", voice.id

    def _add(self, clip: str | None, name: str, transcript: str) -> Any:
        if not clip:
            raise ClipError("There is no clip yet. Drop a file or record one, then make the voice.")
        if not name.strip():
            raise SettingError("The name of a voice", "blank", "type how it is to be called here.")
        path = Path(clip)
        details = VoiceDetails(name=name, transcript=transcript, clip_name=path.name)
        return self._synthesizer.add_voice(path, details).voice

    def remove_voice(self, selected: str | None, event: gr.EventData) -> tuple[Any, str | None]:
        removed = _identifier(event)
        self._asking(lambda: self._synthesizer.voices.remove(removed))
        kept = None if selected == removed else selected
        return self._voices(kept), kept

    def remove_take(self, event: gr.EventData) -> Any:
        self._asking(lambda: self._synthesizer.takes.remove(_identifier(event)))
        return self._takes(TAKES_SHOWN)

    def older_takes(self, event: gr.EventData) -> Any:
        shown = event._data.get("shown") if isinstance(event._data, dict) else None
        return self._takes((shown if isinstance(shown, int) and 0 < shown < 10_000 else 0) + TAKES_SHOWN)

    def _voices(self, selected: str | None) -> Any:
        frame_rate = self._synthesizer.engine.codec.frame_rate
        return voice_list(self._synthesizer.voices.list(), selected=selected, frame_rate=frame_rate)

    def _takes(self, limit: int) -> Any:
        takes = self._synthesizer.takes
        return take_list(takes.list(limit=limit), total=takes.count())

    @staticmethod
    def _asking(act: Any) -> Any:
        """A user's mistake becomes a toast with its one sentence."""
        try:
            return act()
        except StudioError as error:
            raise gr.Error(escape(str(error)), title="That did not work", print_exception=False) from error


def _identifier(event: gr.EventData) -> str:
    """The id that a list sent; it comes from a browser, so it may be anything."""
    data = event._data
    return str(data.get("id", "")) if isinstance(data, dict) else ""


def theme() -> Base:
    """Gradio's plainest theme on fonts the system has; assets/styles.css does the rest."""
    plain = [Font("system-ui"), Font("sans-serif")]
    return Base(font=plain, font_mono=[Font("monospace")])


def build_page(synthesizer: Synthesizer) -> gr.Blocks:
    """The whole page around one Synthesizer."""
    page = Page(synthesizer)
    with gr.Blocks(title="Solo Studio", analytics_enabled=False, delete_cache=(3600, 86400), fill_width=True) as blocks:
        selected = gr.BrowserState(None, storage_key="solo-studio-voice", secret="solo-studio")  # noqa: S106
        _header(synthesizer)
        with gr.Row(elem_id="desk"):
            with gr.Column(elem_id="cast"):
                voices = _list("voices", "Voices", "No voice yet. Make one from a clip, here.")
                form = _clip_form()
            with gr.Column(elem_id="bench"):
                with gr.Column(elem_id="work"):
                    script, speed, seed, speak, stop = _script_form()
                    stage = _stage(synthesizer)
                takes = _list("takes", "Takes", _NO_TAKES, older=True)
        clip, name, transcript, add = form
        quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
        light: dict[str, Any] = quiet | {
            "queue": False
        }  # quicker, and for what has no message: those travel by the queue
        blocks.load(page.open, [selected], [voices, takes, selected], **light)
        voices.choose(page.choose, None, [selected], **quiet)
        voices.remove(page.remove_voice, [selected], [voices, selected], **quiet)
        takes.remove(page.remove_take, None, [takes], **quiet)
        takes.older(page.older_takes, None, [takes], **light)
        stage.ended(page.refresh, [selected], [voices, takes], **light)
        add.click(
            page.add_voice,
            [clip, name, transcript],
            [voices, clip, name, transcript, selected],
            concurrency_limit=4,
            show_progress="minimal",
            show_progress_on=[add],
            api_visibility="private",
        )
        speak.click(None, [script, speed, seed], None, js=_SPEAK)
        stop.click(None, None, None, js=_STOP)
    return blocks


def _header(synthesizer: Synthesizer) -> None:
    engine = synthesizer.engine
    gr.HTML(
        f'<header><h1>Solo Studio</h1><p>Any voice, from one clip. <span class="where">{engine.name} voice model on '
        f"{engine.device}, {engine.sample_rate / 1000:g} kHz</span></p></header>",
        apply_default_css=False,
        elem_id="top",
    )


def _list(elem_id: str, title: str, empty: str, *, older: bool = False) -> gr.HTML:
    more = '<button type="button" class="quiet-button more" data-more>Show older takes</button>' if older else ""
    role = ' role="radiogroup"' if elem_id == "voices" else ""
    return gr.HTML(
        {"items": []},
        html_template=f'<section aria-labelledby="{elem_id}-title"><h2 id="{elem_id}-title">{title}</h2>'
        f'<div{role} aria-labelledby="{elem_id}-title"><ul data-rows></ul></div>'
        f'<p class="empty">{empty}</p>{more}</section>',
        js_on_load=_LIST,
        head=_scripts(),
        apply_default_css=False,
        elem_id=elem_id,
    )


def _scripts() -> str:
    names = ("player.js", "notices.js", "page.js")
    return "".join(f'<script src=".{PREFIX}/page/{name}"></script>' for name in names)


def _clip_form() -> tuple[gr.Audio, gr.Textbox, gr.Textbox, gr.Button]:
    with gr.Column(elem_id="new-voice"):
        gr.HTML(
            '<h2>New voice</h2><p class="hint">3 to 10 seconds of one person speaking, ending in a pause. '
            "Use a voice only with its owner's consent.</p>",
            apply_default_css=False,
        )
        clip = gr.Audio(
            sources=["upload", "microphone"], type="filepath", label="Clip to clone", elem_id="clip", buttons=[]
        )
        name = gr.Textbox(
            label="Name", placeholder="How this voice is called here", max_length=255, elem_id="voice-name"
        )
        transcript = gr.Textbox(
            label="What is said in it (optional)", lines=1, max_lines=3, max_length=2000, elem_id="transcript"
        )
        add = gr.Button("Make this voice", elem_id="add-voice")
    return clip, name, transcript, add


def _script_form() -> tuple[gr.Textbox, gr.Slider, gr.Textbox, gr.Button, gr.Button]:
    script = gr.Textbox(EXAMPLE, label="Text to speak", lines=5, max_lines=18, elem_id="script", autofocus=False)
    with gr.Row(elem_id="options"):
        speed = gr.Slider(0.5, 2.0, 1.0, step=0.05, label="Speed", elem_id="speed", buttons=[])
        seed = gr.Textbox(label="Seed", placeholder="blank: random", max_length=10, elem_id="seed")
    with gr.Row(elem_id="transport"):
        speak = gr.Button("Speak", variant="primary", elem_id="speak")
        stop = gr.Button("Stop", elem_id="stop", interactive=True)
    return script, speed, seed, speak, stop


def _stage(synthesizer: Synthesizer) -> gr.HTML:
    sound = f"{{sampleRate: {synthesizer.engine.sample_rate}, channels: {synthesizer.engine.channels}}}"
    return gr.HTML(
        html_template='<section aria-label="What is being spoken"><canvas aria-hidden="true"></canvas>'
        '<p class="clock" aria-hidden="true"></p><p class="outcome" role="status"></p></section>',
        js_on_load=f"window.studioPage.stage(element, {sound}, trigger) // sends 'ended'",
        head=_scripts(),
        apply_default_css=False,
        elem_id="stage",
    )
