"""Would the codes in the user's library come out the same here: compared, and nothing changed."""

from typing import Any

from studio.invariance.experiment import Found, Steps, missing
from studio.invariance.lab import Lab
from studio.reference_verify import Verification


def library(lab: Lab, steps: Steps) -> Found:
    """Every entry against a solo encode of its kept clip. Codes filled elsewhere may differ, those filled here not."""
    if lab.parts.library is None:
        return missing("no library was handed in")
    found: list[Verification] = []
    for verification in lab.parts.library():
        found.append(verification)
        steps.progress.report(steps.experiment, len(found), len(found), "encoding the library's clips again")
    if not any(each.differing is not None or each.damaged for each in found):
        return Found(
            figures=_figures(found),
            verdict="not checkable",
            sentence=f"None of {len(found)} entries has a kept clip to encode again."
            if found
            else "The library is empty.",
        )
    figures = _figures(found)
    broken = any(each.damaged or (each.differing and not each.elsewhere) for each in found)
    verdict = "broken" if broken else "differs" if figures["codes_differing"] else "holds"
    return Found(figures=figures, verdict=verdict, sentence=_sentence(figures))


def _sentence(figures: dict[str, Any]) -> str:
    said = (
        f"{figures['codes_differing']:,} of {figures['codes']:,} codes would differ here, in {figures['differing']} of "
        f"{figures['checked']} entries; {figures['filled_elsewhere']} were filled elsewhere"
    )
    if figures["damaged"]:
        said += f", {figures['damaged']} are damaged"
    if figures["not_checkable"]:
        said += f", {figures['not_checkable']} cannot be checked"
    return f"{said}. Nothing was changed."


def _figures(found: list[Verification]) -> dict[str, Any]:
    checked = [each for each in found if each.differing is not None]
    return {
        "entries": len(found),
        "checked": len(checked),
        "equal": sum(each.passed for each in checked),
        "differing": sum(bool(each.differing) for each in checked),
        "damaged": sum(each.damaged for each in found),
        "not_checkable": sum(bool(each.not_checkable) and not each.damaged for each in found),
        "filled_elsewhere": sum(bool(each.elsewhere) for each in found),
        "codes": sum(each.num_codes for each in checked),
        "codes_differing": sum(each.differing or 0 for each in checked),
        "rows": [
            {
                "name": each.name,
                "key": each.key,
                "codes": each.num_codes,
                "differing": each.differing,
                "damaged": each.damaged,
                "elsewhere": list(each.elsewhere),
                "not_checkable": each.not_checkable,
            }
            for each in found
        ],
    }
