"""The sentences the voice is judged by. They are never trained on: texts are compared by their words alone."""

import re

PLAIN = (
    "The train was late again this morning.",
    "She poured the tea and opened the window.",
    "We walked along the river until it got dark.",
    "My brother plays the piano every evening.",
    "Please leave your shoes beside the door.",
    "The library closes at six on Saturdays.",
    "He forgot his umbrella in the taxi.",
    "There is fresh bread on the kitchen table.",
    "I would like a glass of cold water.",
    "The children built a castle out of sand.",
    "Our neighbours are moving to the coast.",
    "It has been raining since Tuesday night.",
    "Could you tell me where the station is?",
    "The doctor said that everything looks fine.",
    "They planted apple trees behind the house.",
    "A small dog was sleeping in the sun.",
    "The meeting will start in ten minutes.",
    "I have never seen so many stars before.",
    "Her new book is about life on the farm.",
    "Turn left at the bridge and keep going.",
    "The soup needs a little more salt.",
    "We could hear music coming from the street.",
    "Winter came early to the mountains that year.",
    "Do you remember the name of that song?",
    "The teacher wrote a long answer on the board.",
    "He keeps his old letters in a wooden box.",
    "The garden smells wonderful after the rain.",
    "You can pay with cash or with a card.",
    "The last bus leaves just before midnight.",
    "Nobody knew who had painted the picture.",
)
SPECIAL = {
    "long": "Sometimes the best ideas arrive when you stop looking for them, take a long walk through the quiet "
    "streets, and let your mind wander wherever it wants to go.",
    "word": "Hello.",
    "digits": "Seven four zero two nine five one eight.",
    "question": "Are you coming with us tomorrow?",
}


_SPELLINGS = {"neighbors": "neighbours", "harbor": "harbour"} | {
    str(number): word
    for number, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
}
"""How the recogniser writes some words, and how we do."""


def words(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation, small numbers spelt out."""
    found = re.sub(r"[^a-z0-9' ]", " ", text.lower().replace("-", " ")).split()
    return [_SPELLINGS.get(word, word) for word in found]


_HELD_OUT = frozenset(" ".join(words(text)) for text in (*PLAIN, *SPECIAL.values()))


def is_held_out(text: str) -> bool:
    """True for a text with the words of a held-out one, whatever its punctuation and case."""
    return " ".join(words(text)) in _HELD_OUT
