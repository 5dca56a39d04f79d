"""The encoder that comes when a clip comes, and the switches of torch that it works under."""

import threading
import time

import numpy as np
import pytest
import torch
from toy_moss import codec_files, write_files

from studio.audio.waveform import Waveform
from studio.engine.codec_weights import load_encoder
from studio.engine.engine_errors import EngineClosed
from studio.engine.fixed_arithmetic import fixed_arithmetic
from studio.engine.solo_encoder import EncoderPlan, SoloEncoder
from studio.errors import CheckpointError

CLIP = Waveform((np.random.default_rng(0).standard_normal((2, 40_000)) * 0.1).astype(np.float32), 48_000)


@pytest.fixture
def folder(tmp_path):
    return write_files(tmp_path, codec_files())


def plan(folder, **options) -> EncoderPlan:
    return EncoderPlan(name="toy", load=lambda: load_encoder(folder), num_codebooks=4, device="cpu", **options)


def test_an_encoder_is_loaded_with_the_first_clip_and_kept(folder):
    encoder = SoloEncoder(plan(folder))
    assert not encoder.is_loaded
    first = encoder.encode(CLIP)
    assert encoder.is_loaded
    assert np.array_equal(encoder.encode(CLIP).codes, first.codes)


def test_it_goes_once_no_clip_has_come_for_a_while_and_comes_back_with_the_same_codes(folder):
    encoder = SoloEncoder(plan(folder, keep=0.05))
    first = encoder.encode(CLIP)
    waited = time.monotonic() + 60
    while encoder.is_loaded and time.monotonic() < waited:
        time.sleep(0.01)
    assert not encoder.is_loaded
    assert np.array_equal(encoder.encode(CLIP).codes, first.codes)


def test_a_closed_encoder_says_what_it_freed_and_is_not_loaded_again(folder):
    encoder = SoloEncoder(plan(folder))
    encoder.encode(CLIP)
    assert encoder.close() > 10_000
    assert encoder.close() == 0
    with pytest.raises(EngineClosed, match="toy has been unloaded"):
        encoder.encode(CLIP)


def test_a_codec_that_cannot_be_loaded_is_tried_again_with_the_next_clip(folder):
    whole = (folder / "config.json").read_bytes()
    encoder = SoloEncoder(plan(folder))
    (folder / "config.json").write_bytes(b"{")
    with pytest.raises(CheckpointError, match="damaged"):
        encoder.encode(CLIP)
    (folder / "config.json").write_bytes(whole)
    assert encoder.encode(CLIP).codes.shape == (4, 10)


def test_the_switches_stay_as_long_as_anybody_needs_them_and_are_set_back_after_the_last():
    before = switches()
    entered, left = threading.Event(), threading.Event()

    def hold_and_leave() -> None:
        with fixed_arithmetic():
            entered.set()
            left.wait()

    other = threading.Thread(target=hold_and_leave)
    other.start()
    entered.wait()
    with fixed_arithmetic():
        left.set()
        other.join()
        assert switches() == (False, True, "highest")
    assert switches() == before


def switches() -> tuple[bool, bool, str]:
    attention = torch.backends.cuda.flash_sdp_enabled(), torch.backends.cuda.math_sdp_enabled()
    return *attention, torch.get_float32_matmul_precision()
