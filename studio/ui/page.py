"""The page's layout, and which listener each control calls. Speech goes past gradio: assets/player.js fetches it."""

from typing import Any

import gradio as gr
from gradio.themes import Base, Font

from studio.engine_room import EngineRoom
from studio.server.routes import PREFIX
from studio.settings import Settings
from studio.ui.findings import NOTHING_FOUND
from studio.ui.listeners import USUAL_ORDER, Page

EXAMPLE = (
    "The harbour was quiet before sunrise. Then the gulls began, one by one, and the whole town was awake. "
    "Nobody remembered who had rung the bell."
)
_ORDERS = {
    USUAL_ORDER: "own first",
    "name": "by name",
    "created": "newest",
    "last_used": "last used",
    "times_used": "most used",
}
_NO_VOICES = "No such voice. Make one from a clip, here, or look for another."
_IMPORT = (
    '<label class="quiet-button file">Import<input type="file" data-import accept=".zip" '
    'aria-label="Import a voice from a file"></label>'
)
_NO_TAKES = "Nothing spoken yet. Choose a voice, type a sentence, press Speak."
_LIST = "window.studioPage.list(element, props, watch, trigger) // sends 'choose', 'remove', 'older' and 'changed'"
_SPEAK = "(script, speed, seed) => { window.studioPage.speak(script, speed, seed); return []; }"
_STOP = "() => { window.studioPlayer.stop(); return []; }"


def theme() -> Base:
    """Gradio's plainest theme on fonts the system has; assets/styles.css does the rest."""
    plain = [Font("system-ui"), Font("sans-serif")]
    return Base(font=plain, font_mono=[Font("monospace")])


def build_page(room: EngineRoom, settings: Settings) -> gr.Blocks:
    """The whole page. Which engine speaks may change under it: assets/models.js asks."""
    page = Page(room, settings)
    with gr.Blocks(title="Solo Studio", analytics_enabled=False, delete_cache=(3600, 86400), fill_width=True) as blocks:
        selected = gr.BrowserState(None, storage_key="solo-studio-voice", secret="solo-studio")  # noqa: S106
        top = _header()
        with gr.Row(elem_id="desk"):
            with gr.Column(elem_id="cast"):
                with gr.Column(elem_id="shelf"):
                    shelf = _title("voices", "Voices", tools=_IMPORT)
                    search, order = _voice_tools()
                    voices = _list("voices", _NO_VOICES)
                form = _clip_form()
            with gr.Column(elem_id="bench"):
                with gr.Column(elem_id="work"):
                    script, speed, seed, speak, stop = _script_form()
                    stage = _stage()
                with gr.Column(elem_id="spoken"):
                    _title("takes", "Takes")
                    sought, starred = _take_tools()
                    takes = _list("takes", _NO_TAKES, older=True)
                totals = gr.HTML(apply_default_css=False, elem_id="totals")
        clip, findings, start, end, name, transcript, write, consent, add = form
        quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
        # Quicker, and for what has no message: those travel by the queue.
        light: dict[str, Any] = quiet | {"queue": False}
        shown = [selected, search, order, sought, starred]
        wanted = [sought, starred]
        blocks.load(page.open, [selected], [voices, takes, totals, selected], **light)
        voices.choose(page.choose, None, [selected], **quiet)
        voices.remove(page.remove_voice, [selected, search, order], [voices, selected], **quiet)
        shelf.changed(page.refresh, shown, [voices, takes, totals], **light)
        voices.changed(page.refresh, shown, [voices, takes, totals], **light)
        top.changed(page.refresh, shown, [voices, takes, totals], **light)
        search.change(page.find, [selected, search, order], [voices], trigger_mode="always_last", **quiet)
        order.input(page.find, [selected, search, order], [voices], **quiet)
        takes.remove(page.remove_take, wanted, [takes], **quiet)
        takes.older(page.older_takes, wanted, [takes], **light)
        sought.change(page.find_takes, wanted, [takes], trigger_mode="always_last", **quiet)
        starred.input(page.find_takes, wanted, [takes], **quiet)
        takes.changed(page.refresh, shown, [voices, takes, totals], **light)
        stage.ended(page.refresh, shown, [voices, takes, totals], **light)
        clip.change(page.listen, [clip], [findings, start, end], **quiet)
        findings.trim(page.trim, None, [start, end], **quiet)
        write.click(
            page.transcribe,
            [clip, start, end],
            [transcript],
            concurrency_limit=1,
            show_progress="minimal",
            show_progress_on=[write],
            api_visibility="private",
        )
        add.click(
            page.add_voice,
            [clip, start, end, name, transcript, consent],
            [voices, clip, findings, start, end, name, transcript, consent, selected],
            concurrency_limit=4,
            show_progress="minimal",
            show_progress_on=[add],
            api_visibility="private",
        )
        speak.click(None, [script, speed, seed], None, js=_SPEAK)
        stop.click(None, None, None, js=_STOP)
    return blocks


def _header() -> gr.HTML:
    """What this is, what speaks now, and the way to the models and to the lab."""
    return gr.HTML(
        html_template='<header><h1>Solo Studio</h1><p>Any voice, from one clip.</p><p class="speaks">'
        '<span class="where" role="status"></span> <button type="button" class="quiet-button" data-models '
        'aria-haspopup="dialog">Models</button> <button type="button" class="quiet-button" data-lab '
        'aria-haspopup="dialog">Invariance lab</button></p></header>',
        js_on_load="window.studioModels.header(element, trigger); window.studioLab.header(element) // sends 'changed'",
        head=_scripts(),
        apply_default_css=False,
        elem_id="top",
    )


def _title(of: str, title: str, *, tools: str = "") -> gr.HTML:
    """Over a list and the fields that search it."""
    return gr.HTML(
        html_template=f'<div class="title"><h2 id="{of}-title">{title}</h2>{tools}</div>',
        js_on_load="window.studioPage.title(element, trigger) // sends 'changed'",
        head=_scripts(),
        apply_default_css=False,
        elem_id=f"{of}-top",
    )


def _list(elem_id: str, empty: str, *, older: bool = False) -> gr.HTML:
    more = '<button type="button" class="quiet-button more" data-more>Show older takes</button>' if older else ""
    warning = '<p class="lost" data-warning></p>' if older else ""
    role = ' role="radiogroup"' if elem_id == "voices" else ""
    return gr.HTML(
        {"items": []},
        html_template=f'<section aria-labelledby="{elem_id}-title">{warning}'
        f'<div{role} aria-labelledby="{elem_id}-title"><ul data-rows></ul></div>'
        f'<p class="empty">{empty}</p>{more}</section>',
        js_on_load=_LIST,
        head=_scripts(),
        apply_default_css=False,
        elem_id=elem_id,
    )


def _scripts() -> str:
    lab = ("lab-words.js", "lab-charts.js", "lab-figures.js", "lab.js")
    names = ("player.js", "notices.js", "voice.js", "models.js", "models-dialog.js", *lab, "page.js")
    return "".join(f'<script src=".{PREFIX}/page/{name}"></script>' for name in names)


def _voice_tools() -> tuple[gr.Textbox, gr.Dropdown]:
    """To find a voice among many, and to have them in another order."""
    with gr.Row(elem_id="voice-tools"):
        search = gr.Textbox(
            label="Find a voice", show_label=False, placeholder="Find a voice", max_length=100, elem_id="voice-search"
        )
        choices = [(shown, order) for order, shown in _ORDERS.items()]
        order = gr.Dropdown(
            choices, value=USUAL_ORDER, label="Order", show_label=False, filterable=False, elem_id="voice-order"
        )
    return search, order


def _take_tools() -> tuple[gr.Textbox, gr.Checkbox]:
    with gr.Row(elem_id="take-tools"):
        sought = gr.Textbox(
            label="Find a take", show_label=False, placeholder="Find a take", max_length=100, elem_id="take-search"
        )
        starred = gr.Checkbox(False, label="favourites only", elem_id="take-starred")
    return sought, starred


def _clip_form() -> tuple[
    gr.Audio, gr.HTML, gr.Number, gr.Number, gr.Textbox, gr.Textbox, gr.Button, gr.Textbox, gr.Button
]:
    with gr.Column(elem_id="new-voice"):
        gr.HTML(
            '<h2>New voice</h2><p class="hint">3 to 10 seconds of one person speaking, ending in a pause. '
            "Use a voice only with its owner's consent.</p>",
            apply_default_css=False,
        )
        clip = gr.Audio(
            sources=["upload", "microphone"], type="filepath", label="Clip to clone", elem_id="clip", buttons=[]
        )
        findings = gr.HTML(
            NOTHING_FOUND,
            html_template='<div class="findings" role="status"></div>',
            js_on_load="window.studioPage.findings(element, props, watch, trigger) // sends 'trim'",
            head=_scripts(),
            apply_default_css=False,
            elem_id="findings",
        )
        with gr.Row(elem_id="trim"):
            start = gr.Number(label="Use from (s)", minimum=0, step=0.01, value=None, elem_id="trim-start")
            end = gr.Number(label="to (s)", minimum=0, step=0.01, value=None, elem_id="trim-end")
        name = gr.Textbox(
            label="Name", placeholder="How this voice is called here", max_length=255, elem_id="voice-name"
        )
        transcript = gr.Textbox(
            label="What is said in it (optional)", lines=1, max_lines=3, max_length=2000, elem_id="transcript"
        )
        write = gr.Button("Write it down for me", elem_id="write", size="sm")
        consent = gr.Textbox(
            label="Whose voice it is, and that they agreed (optional)", max_length=2000, elem_id="consent"
        )
        add = gr.Button("Make this voice", elem_id="add-voice")
    return clip, findings, start, end, name, transcript, write, consent, add


def _script_form() -> tuple[gr.Textbox, gr.Slider, gr.Textbox, gr.Button, gr.Button]:
    script = gr.Textbox(EXAMPLE, label="Text to speak", lines=5, max_lines=18, elem_id="script", autofocus=False)
    with gr.Row(elem_id="options"):
        speed = gr.Slider(0.5, 2.0, 1.0, step=0.05, label="Speed", elem_id="speed", buttons=[])
        seed = gr.Textbox(label="Seed", placeholder="blank: random", max_length=10, elem_id="seed")
    with gr.Row(elem_id="transport"):
        speak = gr.Button("Speak", variant="primary", elem_id="speak")
        stop = gr.Button("Stop", elem_id="stop", interactive=False)
    return script, speed, seed, speak, stop


def _stage() -> gr.HTML:
    return gr.HTML(
        html_template='<section aria-label="What is being spoken"><canvas aria-hidden="true"></canvas>'
        '<p class="clock" aria-hidden="true"></p><p class="outcome" role="status"></p></section>',
        js_on_load="window.studioPage.stage(element, trigger) // sends 'ended'",
        head=_scripts(),
        apply_default_css=False,
        elem_id="stage",
    )
