"""The lab on a codec of a released size with random weights, here its toy: what a machine with a card is asked for."""

import numpy as np
import pytest
from command_line import CommandLine

from studio.engine.random_codec import RandomCodec
from studio.engine.sampling import SamplingOptions
from studio.errors import SettingError
from studio.text.script import Utterance


def test_it_encodes_and_says_that_it_does_not_speak() -> None:
    codec = RandomCodec("random-toy", "cpu")
    with pytest.raises(SettingError, match="random weights, for the lab only"):
        codec.check_script("Good evening.")
    with pytest.raises(SettingError, match="does not speak"):
        codec.speak(Utterance("Good evening."), np.zeros((4, 2)), SamplingOptions(seed=0), index=0)


def test_the_experiments_run_on_it_and_what_needs_speech_is_not_checkable(studio: CommandLine) -> None:
    answer = studio("lab", "repeat-solo", "solo-batch", "slots", "--engine", "random-toy", "--quick", "--json", "-")
    records = {record["experiment"]: record for record in answer.record["experiments"]}
    assert records["repeat-solo"]["verdict"] == "holds"
    assert records["solo-batch"]["verdict"] in {"holds", "differs"}
    assert records["slots"]["verdict"] == "not checkable"
