"""What can go wrong while an engine speaks, as sentences.

StudioError
├── EngineClosed            the voice model was let go while somebody still used it
└── RanAway                 the speech of one utterance did not end well, and was ended
"""

from studio.errors import StudioError


class EngineClosed(StudioError):
    def __init__(self, engine: str) -> None:
        super().__init__(f"The voice model {engine} has been unloaded. Choose a voice model, then try again.")


class RanAway(StudioError):
    def __init__(self, text: str, reason: str) -> None:
        super().__init__(
            f"The voice model lost its way in {text!r}: {reason}. Its speech was ended there, and what was spoken is "
            "kept. Speak it again with another seed, or write that sentence in another way."
        )
