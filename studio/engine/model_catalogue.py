"""The models we know: where their files lie, what may be asked of them and what they ask of a machine.

Says nothing about how files are moved. Languages, sizes and rates are those of the publishers' pages. Where `known`
names a file, two projects that have nothing to do with each other publish the same size and SHA-256 of it at that
commit; files it does not name are held against what the hub says about them at the time of the download.
"""

from collections.abc import Collection
from dataclasses import dataclass
from fnmatch import fnmatchcase

from studio.errors import UnknownModel

SAFETENSORS = (("model.safetensors",), ("model.safetensors.index.json", "model-*.safetensors"))
"""Two layouts of the same weights, the first that is there is taken: one file, or an index and its shards."""
PICKLE = ("pytorch_model.bin",)
"""Read elsewhere without running any code of it."""
ROOM = 256 * 2**20
"""Bytes for what one step works with, beside weights and caches; an allowance, not a measurement."""


@dataclass(frozen=True, kw_only=True)
class KnownFile:
    """One file as it is at the pinned commit."""

    name: str
    num_bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Repository:
    """One repository of a hub, `ORG/NAME`, and which of its files we want. Never code: no `*.py` fits any layout."""

    name: str
    revision: str
    """A commit; or "main", which is looked up when downloading, and the commit found is what is stored."""
    files: tuple[str, ...]
    """Needed beside the weights."""
    layouts: tuple[tuple[str, ...], ...]
    """Ways in which the weights may be stored, as patterns; the first of which every pattern fits a file is taken."""
    about_bytes: int
    """Roughly how much that is; only ever shown."""
    known: tuple[KnownFile, ...] = ()
    other_names: tuple[str, ...] = ()
    """What the hub calls it as well; people's folders may have either name."""

    def choose(self, names: Collection[str]) -> tuple[str, ...] | None:
        """Which of these names are wanted; None where something is missing."""
        if not set(self.files) <= set(names):
            return None
        for layout in self.layouts:
            fits = [[name for name in names if fnmatchcase(name, pattern)] for pattern in layout]
            if all(fits):
                return (*self.files, *(name for fitting in fits for name in sorted(fitting)))
        return None

    def known_file(self, name: str) -> KnownFile | None:
        return next((file for file in self.known if file.name == name), None)

    @property
    def wanted(self) -> str:
        """What `choose` looks for, for a sentence."""
        return ", ".join((*self.files, " or ".join(" with ".join(layout) for layout in self.layouts)))


@dataclass(frozen=True, kw_only=True)
class MemoryNeed:
    """Bytes of device memory in use while speaking: the language model in `dtype`, the codec in float32 (what the cache
    of reference codes asks for), the key/value cache of the longest speech, and `ROOM`. Arithmetic from parameter
    counts, not measured."""

    device: str
    dtype: str
    num_bytes: int


@dataclass(frozen=True, kw_only=True)
class ModelEntry:
    """One model a person can choose: a language model and the codec whose codes it speaks."""

    name: str
    title: str
    language_model: Repository
    codec: Repository
    licence: str
    languages: tuple[str, ...]
    """ISO 639 codes."""
    sample_rate: int
    channels: int
    runs_on_cpu: bool
    """Whether a processor alone is reported to be quick enough to be of use."""
    memory: tuple[MemoryNeed, ...]

    @property
    def repositories(self) -> tuple[Repository, Repository]:
        return self.language_model, self.codec

    @property
    def about_bytes(self) -> int:
        return sum(repository.about_bytes for repository in self.repositories)


def _needs(
    parameters: int, codec_parameters: int, cached: int, places: tuple[tuple[str, str], ...]
) -> tuple[MemoryNeed, ...]:
    """`cached`: numbers in the key/value cache, kept in the language model's dtype."""
    width = {"float32": 4, "bfloat16": 2}
    return tuple(
        MemoryNeed(
            device=device,
            dtype=dtype,
            num_bytes=(parameters + cached) * width[dtype] + codec_parameters * width["float32"] + ROOM,
        )
        for device, dtype in places
    )


MOSS_NANO = ModelEntry(
    name="moss-nano",
    title="MOSS-TTS Nano",
    language_model=Repository(
        name="OpenMOSS-Team/MOSS-TTS-Nano",
        revision="44502f80dbf9743528fa921cc544d662c685ebec",
        files=("config.json", "tokenizer.model"),
        layouts=(*SAFETENSORS, PICKLE),
        about_bytes=235_000_000,
        other_names=("OpenMOSS-Team/MOSS-TTS-Nano-100M",),
    ),
    codec=Repository(
        name="OpenMOSS-Team/MOSS-Audio-Tokenizer-Nano",
        revision="6aa02b01e445cc585582cf0ba480bc3ea6c8dd68",
        files=("config.json",),
        layouts=SAFETENSORS,
        about_bytes=88_000_000,
    ),
    licence="Apache-2.0",
    languages=tuple("zh en de es fr ja it hu ko ru fa ar pl pt cs da sv el tr".split()),
    sample_rate=48_000,
    channels=2,
    runs_on_cpu=True,
    memory=_needs(
        117_311_232,
        21_969_664,
        2 * 12 * 768 * 2_048,  # keys and values, layers, width, positions
        (("cpu", "float32"), ("cuda", "float32")),
    ),
)

MOSS_LOCAL = ModelEntry(
    name="moss-local",
    title="MOSS-TTS Local v1.5",
    language_model=Repository(
        name="OpenMOSS-Team/MOSS-TTS-Local-Transformer-v1.5",
        revision="be7766a6735b98bd793f7c79fb720b4d0f5d13b8",
        files=("config.json", "tokenizer.json"),
        layouts=SAFETENSORS,
        about_bytes=9_117_000_000,
        known=(
            KnownFile(
                name="model.safetensors",
                num_bytes=9_100_859_544,
                sha256="608f1ff64bc6caa9be836060fc7c78a15c4658c4a07b8d73c78d6f70d1b39c23",
            ),
        ),
    ),
    codec=Repository(
        name="OpenMOSS-Team/MOSS-Audio-Tokenizer-v2",
        revision="f6e20e543b33d2c252a7ef71bdf8aa71e5ff9169",
        files=("config.json",),
        layouts=SAFETENSORS,
        about_bytes=8_495_300_000,
        known=(
            KnownFile(
                name="model-00001-of-00003.safetensors",
                num_bytes=3_978_639_168,
                sha256="2d9f9182f17b143a23937feb87c63c08221bd28e685e4bc2fa55dcdce17fcde7",
            ),
            KnownFile(
                name="model-00002-of-00003.safetensors",
                num_bytes=3_992_738_352,
                sha256="d4e48106d0254fe3b00ea0707e88fc6aee076993825e108dd9cef847f9db236e",
            ),
            KnownFile(
                name="model-00003-of-00003.safetensors",
                num_bytes=523_681_336,
                sha256="d0449fe1b0ef1f6045946867148d8166b9a91a58d0feca4a18b641494d0b22da",
            ),
        ),
    ),
    licence="Apache-2.0",
    languages=tuple(
        "zh yue en ar cs da nl fi fr de el he hi hu it ja ko mk ms fa pl pt ro ru es sw sv tl th tr vi".split()
    ),
    sample_rate=48_000,
    channels=2,
    runs_on_cpu=False,
    memory=_needs(
        4_129_990_144,
        2_123_701_248,
        2 * 36 * 8 * 128 * 8_192,  # keys and values, layers, heads, head width, positions
        (("cuda", "bfloat16"), ("cuda", "float32"), ("cpu", "float32")),
    ),
)

MODELS = (MOSS_NANO, MOSS_LOCAL)


def find_model(name: str) -> ModelEntry:
    """Raises UnknownModel, which names those there are."""
    for entry in MODELS:
        if entry.name == name:
            return entry
    raise UnknownModel(name, ", ".join(entry.name for entry in MODELS))
