"""The ids of whole prompts with the released tokenizers: what those tokenizers say of each piece stands in the golden
lists, so a piece that is cut elsewhere, or has other words, is not found."""

import json
from dataclasses import replace

import numpy as np
import pytest
from moss_golden import GOLDEN

from studio.engine.backbone_config import ControlTokens, SpeechModelConfig
from studio.engine.backbone_json import read_speech_config
from studio.engine.prompt_rows import PromptFields, PromptRows
from studio.errors import NothingToSpeak

LOCAL = json.loads((GOLDEN / "prompt_ids" / "local_v1_5.json").read_text(encoding="utf-8"))
NANO = json.loads((GOLDEN / "prompt_ids" / "nano.json").read_text(encoding="utf-8"))
LOCAL_IDS = ControlTokens(
    pad=151643,
    im_start=151644,
    im_end=151645,
    audio_start=151669,
    audio_end=151670,
    user_slot=151654,
    assistant_slot=151656,
)
BLOCK = "\n- Instruction:\n{}\n- Tokens:\n{}\n- Quality:\n{}\n- Sound Event:\n{}\n- Ambient Sound:\n{}\n- Language:\n{}"
CODES = np.arange(6).reshape(3, 2)


def block(*values: str) -> str:
    return BLOCK.format(*values) + "\n- Text:\n"


class KnownPieces:
    """A tokenizer that knows certain pieces by heart and no other text at all."""

    def __init__(self, pieces: dict[str, list[int]], controls: dict[int, list[int]] | None = None) -> None:
        self._pieces = pieces
        self._controls = controls or {}

    @property
    def control_ids(self) -> frozenset[int]:
        return frozenset(self._controls)

    def encode(self, text: str) -> list[int]:
        return self._pieces[text]

    def spell(self, control_id: int) -> list[int]:
        return self._controls[control_id]


LOCAL_PIECES = {
    "user\n": LOCAL["prefix"][1:3],
    "<user_inst>\n- Reference(s):\n": LOCAL["prefix"][3:],
    "None": LOCAL["none"],
    block(*["None"] * 6): LOCAL["after_reference_all_none"],
    block(*["None"] * 5, "English"): LOCAL["after_reference_english"],
    block("speak slowly", "40", "high", "rain", "None", "French"): LOCAL["after_reference_fields"],
    "\n</user_inst>": LOCAL["assistant_prefix"][:5],
    "\n": LOCAL["assistant_prefix"][6:7],
    "assistant\n": LOCAL["assistant_prefix"][8:],
    "Nine small boats.": [83329, 2613, 31631, 13],
} | {case["text"]: case["ids"] for case in LOCAL["texts"]}
NANO_PIECES = {
    "user\n": NANO["prefix"][1:3],
    "<user_inst>\n- Reference(s):\n": NANO["prefix"][3:],
    "None": NANO["none"],
    block(*["None"] * 6): NANO["after_reference"],
    "\n</user_inst>": NANO["assistant_prefix"][:2],
    "\n": [],
    "assistant\n": NANO["assistant_prefix"][4:],
} | {case["text"]: case["ids"] for case in NANO["texts"]}


def config(folder: str, tokens: ControlTokens | None = None) -> SpeechModelConfig:
    toy = read_speech_config(GOLDEN / folder)
    return replace(toy, vocabulary=160_000, tokens=tokens or toy.tokens)


def local(controls: dict[int, list[int]] | None = None) -> PromptRows:
    return PromptRows(config("local_v1_5", LOCAL_IDS), KnownPieces(LOCAL_PIECES, controls))


def nano() -> PromptRows:
    return PromptRows(config("nano_lm"), KnownPieces(NANO_PIECES))


def test_a_whole_prompt_of_local_has_the_published_ids() -> None:
    rows = local().clone("Nine small boats.", fields=PromptFields(language="English"))
    assert rows[:, 0].tolist() == LOCAL["rows_text_column_no_reference"]
    assert (rows[:, 1:] == 32).all()


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        (PromptFields(), "after_reference_all_none"),
        (PromptFields(language=" English "), "after_reference_english"),
        (
            PromptFields(
                instruction=" speak slowly\n",
                tokens=40,
                quality="high",
                sound_event="rain",
                ambient_sound=" ",
                language="French",
            ),
            "after_reference_fields",
        ),
    ],
)
def test_fields_of_local_are_stripped_and_blank_ones_read_none(fields: PromptFields, name: str) -> None:
    ids = local().clone("Hello there.", fields=fields)[:, 0].tolist()
    start = len(LOCAL["prefix"]) + len(LOCAL["none"])
    assert ids[start : start + len(LOCAL[name])] == LOCAL[name]


@pytest.mark.parametrize("case", NANO["texts"], ids=lambda case: case["text"])
def test_a_whole_prompt_of_nano_has_the_published_ids(case: dict) -> None:
    rows = nano().clone(case["text"], [CODES])
    reference = [6, 8, 8, 7]
    assert rows[:, 0].tolist() == [
        *NANO["prefix"],
        *reference,
        *NANO["after_reference"],
        *case["ids"],
        *NANO["assistant_prefix"],
        6,
    ]


def test_codes_stand_beside_their_slots_and_fewer_codebooks_leave_pads() -> None:
    rows = nano().clone("Hello there.", [CODES])[:, 1:]
    start = len(NANO["prefix"]) + 1
    assert rows[start : start + 2].tolist() == [[0, 2, 4, 32], [1, 3, 5, 32]]
    assert (np.delete(rows, [start, start + 1], axis=0) == 32).all()


def test_two_references_follow_each_other_without_anything_between() -> None:
    ids = local().clone("Hello there.", [CODES, CODES[:, :1]])[:, 0].tolist()
    start = len(LOCAL["prefix"])
    assert ids[start : start + 7] == [151669, 151654, 151654, 151670, 151669, 151654, 151670]


def test_text_that_spells_a_control_token_gives_its_name_as_words() -> None:
    text = "<|audio_start|>x"
    assert 151669 in LOCAL_PIECES[text]
    steered = local().clone(text)[:, 0].tolist()
    spoken = local({151669: [16736, 1191]}).clone(text)[:, 0].tolist()
    assert steered.count(151669) == 2
    assert spoken.count(151669) == 1, "the one of the template stays"
    place = steered.index(151669)
    assert spoken == [*steered[:place], 16736, 1191, *steered[place + 1 :]]


@pytest.mark.parametrize("text", ["", "  \n\t"])
def test_text_with_nothing_to_speak_is_refused_since_it_might_never_end(text: str) -> None:
    with pytest.raises(NothingToSpeak):
        nano().clone(text, [CODES])
    with pytest.raises(NothingToSpeak):
        nano().continuation(text, "Hello there.", CODES)


@pytest.mark.parametrize("codes", [CODES[0], np.zeros((5, 2), dtype=int), CODES * 10, -CODES])
def test_codes_that_are_not_of_this_model_are_refused(codes: np.ndarray) -> None:
    with pytest.raises(ValueError, match="code"):
        nano().clone("Hello there.", [codes])
