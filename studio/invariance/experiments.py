"""Every experiment of the lab, in the order in which a report reads."""

from studio.errors import SettingError
from studio.invariance.audible import audible
from studio.invariance.conditions import cost, settings_table
from studio.invariance.experiment import Experiment
from studio.invariance.inside import replay, trace
from studio.invariance.leaks import neighbour, padding
from studio.invariance.library import library
from studio.invariance.margins import margins
from studio.invariance.noise import history, repeat_batch, repeat_solo
from studio.invariance.promise import cache_check
from studio.invariance.search import search
from studio.invariance.shapes import lengths, row_count, solo_batch
from studio.invariance.stages import chunks, sampling, slots

EXPERIMENTS = (
    Experiment(
        name="repeat-solo", question="Does a clip encoded alone give the same codes every time?", run=repeat_solo
    ),
    Experiment(
        name="repeat-batch", question="Does each row of one batch give the same codes every time?", run=repeat_batch
    ),
    Experiment(name="history", question="Does it matter what was encoded before?", run=history),
    Experiment(name="solo-batch", question="Are a clip's codes the same alone and in a batch?", run=solo_batch),
    Experiment(
        name="neighbour", question="In a batch of one shape, does the other clip's content matter?", run=neighbour
    ),
    Experiment(name="rows", question="Does the number of rows matter, or the longest one?", run=row_count),
    Experiment(name="lengths", question="Does it matter how much longer the neighbour is?", run=lengths),
    Experiment(name="padding", question="Does what stands in the padding matter?", run=padding),
    Experiment(name="trace", question="Where inside the encoder does a batch begin to differ?", run=trace),
    Experiment(name="replay", question="Does that module alone show it, given the same numbers?", run=replay),
    Experiment(name="margins", question="Why these codes and no others?", run=margins),
    Experiment(name="audible", question="Can it be heard?", run=audible),
    Experiment(name="settings", question="Which dtype and how many threads remove it?", run=settings_table, once=True),
    Experiment(name="search", question="Which shapes show it, and which is the smallest?", run=search, once=True),
    Experiment(name="cost", question="What does encoding alone cost?", run=cost, once=True),
    Experiment(
        name="cache",
        question="Does each clip have one stable value, whoever asks and when?",
        run=cache_check,
        once=True,
    ),
    Experiment(
        name="sampling", question="Do neighbours or the order of arrival change what is drawn?", run=sampling, once=True
    ),
    Experiment(name="slots", question="Is a take made alone the one made beside others?", run=slots, once=True),
    Experiment(name="chunks", question="Is what is streamed what a whole decode gives?", run=chunks, once=True),
    Experiment(
        name="library", question="Would the codes in the library come out the same here?", run=library, once=True
    ),
)
BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS}
ON_REQUEST = ("library",)
"""Not part of the whole set: it encodes every kept clip of the user."""


def chosen(names: tuple[str, ...]) -> tuple[Experiment, ...]:
    """Those named, in the order of the table, else the whole set. Raises SettingError for an unknown name."""
    for name in names:
        if name not in BY_NAME:
            raise SettingError("The experiment", name, f"choose from {', '.join(BY_NAME)}.")
    return tuple(
        experiment
        for experiment in EXPERIMENTS
        if experiment.name in names or (not names and experiment.name not in ON_REQUEST)
    )
