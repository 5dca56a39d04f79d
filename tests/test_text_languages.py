"""Which letters belong to which languages."""

import pytest

from studio.engine.model_catalogue import MODELS
from studio.text.languages import LANGUAGES, ForeignLetters, check_letters

SAMPLES = {
    "ar": "صباح الخير",
    "el": "Καλημέρα",
    "en": "Good morning — it is 5 °C, naïve & £3.",
    "he": "בוקר טוב",
    "hi": "सुप्रभात",
    "ja": "おはようございます、コーヒー々",
    "ko": "좋은 아침",
    "mk": "Добро утро",
    "ru": "Доброе утро",
    "th": "สวัสดีตอนเช้า",
    "vi": "Chào buổi sáng",
    "zh": "早上好",
}


def test_every_language_of_every_model_is_known():
    for model in MODELS:
        assert set(model.languages) <= LANGUAGES.keys()


@pytest.mark.parametrize("code", SAMPLES)
def test_a_language_is_written_in_its_own_letters_and_in_latin_ones(code):
    check_letters(f"{SAMPLES[code]} (USB, ½ kg)", [code])


@pytest.mark.parametrize("code", sorted(SAMPLES.keys() - {"en", "vi"}))
def test_letters_of_another_language_are_refused_by_the_word(code):
    with pytest.raises(ForeignLetters, match="one of its languages: English, Vietnamese"):
        check_letters(f"Hello {SAMPLES[code]}", ["vi", "en"])


@pytest.mark.parametrize("text", ["ｆｕｌｌ　ｗｉｄｔｈ", "№ 5 ℃ ™ ∑ 😀 →", "x² ﬁ ª º µ", "ˈwɔːtə", "e\u0301"])
def test_signs_and_other_forms_of_latin_letters_belong_to_every_language(text):
    check_letters(text, ["en"])
