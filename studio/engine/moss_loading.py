"""From a model of the catalogue to an engine: where its files lie, on which device and in which dtype it runs."""

import hashlib
import logging
from functools import partial

import torch

from studio.engine.backbone_json import read_speech_config
from studio.engine.codec_json import read_codec_config
from studio.engine.codec_weights import load_decoder, load_encoder
from studio.engine.device_memory import give_back, memory_suffices
from studio.engine.fixed_arithmetic import ATTENTION, fixed_arithmetic
from studio.engine.huge_pages import use_huge_pages
from studio.engine.interface import CodecIdentity
from studio.engine.model_catalogue import ModelEntry
from studio.engine.model_errors import NotFinite
from studio.engine.model_manifest import Manifest
from studio.engine.model_memory import check_memory
from studio.engine.model_store import ModelFolders, ModelStore
from studio.engine.moss_engine import MossEngine
from studio.engine.moss_family import MossParts, family_of
from studio.engine.moss_pool import SpeechPool
from studio.engine.packed_weights import WeightBits, loses_nothing, pack
from studio.engine.sampling import CounterDraws
from studio.engine.solo_encoder import EncoderPlan, SoloEncoder
from studio.engine.speech_frames import speech_frames
from studio.engine.speech_model import load_speech_model
from studio.errors import CheckpointError, SettingError
from studio.settings import Settings

_logger = logging.getLogger(__name__)
_ENCODER_SECONDS = 60.0
"""How long an encoder stays on a graphics card after its last clip."""
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
_TRIAL = "Yes."


def load_moss(entry: ModelEntry, settings: Settings) -> MossEngine:
    """Loads what speaks of a model and tries it out on one frame; what encodes is loaded when the first clip comes.

    Raises ModelAbsent, FolderUnfit, SettingError where the device is not here or not known to do, MemoryTooSmall before
    anything is loaded, OutOfMemory, CheckpointError where files are damaged or do not fit each other, NotFinite, and
    LanesDiffer.
    """
    store = ModelStore(settings.models_dir)
    folders = store.folders(entry, settings.hub)
    manifest = store.find(entry.codec)
    assert manifest is not None, "its folder was found"
    device = choose_device(entry, settings.device)
    parts = _load_parts(entry, folders, device)
    if device == "cpu":
        use_huge_pages()
    identity = codec_identity(parts, manifest)
    encoder = SoloEncoder(
        EncoderPlan(
            name=entry.name,
            load=partial(load_encoder, folders.codec, device=device),
            num_codebooks=identity.num_codebooks,
            device=device,
            lanes=settings.lanes,
            keep=None if device == "cpu" else _ENCODER_SECONDS,
        )
    )
    engine = MossEngine(parts, encoder, codec=identity, revision=folders.revision)
    engine.check_lanes()
    return engine


def codec_identity(parts: MossParts, manifest: Manifest) -> CodecIdentity:
    """What the codes of a clip depend on beside the clip; `manifest` is that of the codec's files."""
    config = parts.decoder.config
    return CodecIdentity(
        codec_id=manifest.repository,
        digest=codec_digest(manifest),
        sample_rate=config.sample_rate,
        hop_length=config.hop_length,
        num_codebooks=parts.model.config.num_codebooks,
        codebook_size=config.quantizer.codebook_size,
        compute_dtype="float32",
        attention_backend=ATTENTION,
        recipe=parts.family.recipe,
    )


def choose_device(entry: ModelEntry, wanted: str) -> str:
    """The device that the settings mean: with "auto" a graphics card where there is one, else the processor, of which
    is said that it is slow where it is. Raises SettingError where the device is not here, or does not do."""
    has_card = torch.cuda.is_available()
    if wanted == "cuda" and not has_card:
        raise SettingError("device", wanted, "torch finds no graphics card here; choose auto or cpu.")
    if wanted == "mps":
        raise SettingError("device", wanted, "it has no 64-bit numbers, which these models draw with; choose cpu.")
    device = "cuda" if has_card and wanted != "cpu" else "cpu"
    if device == "cpu" and not entry.runs_on_cpu:
        _logger.warning("%s is slow on a processor, much slower than it speaks; it wants a graphics card.", entry.title)
    return device


def codec_digest(manifest: Manifest) -> str:
    """SHA-256 over the names and digests of the codec's files, as they were read when they came in."""
    files = sorted((file.name, file.sha256) for file in manifest.files)
    return hashlib.sha256("".join(f"{name} {digest}\n" for name, digest in files).encode()).hexdigest()


def check_fit(folders: ModelFolders) -> None:
    """Raises CheckpointError where either part cannot be used, or the codec is not the one whose codes the language
    model speaks: with another one everything would run, and the sound would be noise."""
    speech, codec = read_speech_config(folders.language_model), read_codec_config(folders.codec)
    theirs = (codec.sample_rate, codec.quantizer.codebook_size)
    if theirs != (speech.sample_rate, speech.codebook_size) or codec.quantizer.num_codebooks < speech.num_codebooks:
        raise CheckpointError(
            str(folders.codec),
            f"it has {codec.quantizer.num_codebooks} codebooks of {theirs[1]} entries at {theirs[0]} Hz, and the "
            f"language model speaks {speech.num_codebooks} of {speech.codebook_size} at {speech.sample_rate} Hz",
        )


def _load_parts(entry: ModelEntry, folders: ModelFolders, device: str) -> MossParts:
    """In the first dtype of the catalogue that the device knows and in which a trial gives numbers."""
    check_fit(folders)
    dtypes = [need.dtype for need in entry.memory if need.device == device and _is_known(device, need.dtype)]
    for dtype in dtypes:
        give_back(device)
        check_memory(entry, device, dtype)
        with memory_suffices(entry.title, device):
            parts = _load_in(entry, folders, device, dtype)
            if _gives_numbers(parts):
                return parts
        _logger.warning("%s gives no numbers on %s in %s.", entry.title, device, dtype)
        del parts
    raise NotFinite(entry.title, device, " or ".join(dtypes))


def _is_known(device: str, dtype: str) -> bool:
    """Emulated arithmetic, which older cards offer, is slower than float32 and does not count."""
    return device == "cpu" or dtype != "bfloat16" or torch.cuda.is_bf16_supported(including_emulation=False)


def _load_in(entry: ModelEntry, folders: ModelFolders, device: str, dtype: str) -> MossParts:
    """On a CPU a file of 16-bit weights stays one: reading them takes most of the time of a frame."""
    model = load_speech_model(folders.language_model, device=device, dtype=_DTYPES[dtype])
    if device == "cpu" and loses_nothing(model):
        pack(model, WeightBits.SIXTEEN)
    decoder = load_decoder(folders.codec, num_codebooks=model.config.num_codebooks, device=device)
    return MossParts(
        entry=entry,
        model=model,
        tokenizer=family_of(model.config).tokenizer(folders.language_model),
        decoder=decoder,
        device=device,
        dtype=dtype,
        pool=SpeechPool(model, decoder),
    )


def _gives_numbers(parts: MossParts) -> bool:
    """Whether one frame and its sound are finite; it also does what the first request would otherwise wait for."""
    prompt = parts.prompts.clone(_TRIAL)
    sampling, draws = parts.family.sampling, CounterDraws(0, 0)
    codes = torch.zeros(parts.model.config.num_codebooks, 1, dtype=torch.int64, device=parts.device)
    with fixed_arithmetic():
        sound = parts.decoder.step(codes, parts.decoder.start(max_frames=1))
        try:
            for _ in speech_frames(parts.model, prompt, budget=1, sampling=sampling, draws=draws):
                pass
        except FloatingPointError:
            return False
    return bool(sound.isfinite().all())
