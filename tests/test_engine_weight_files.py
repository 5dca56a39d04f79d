import json

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from studio.engine.weight_files import drop_tied, fold_weight_norms, load_strictly, parameter_total, read_tensors
from studio.errors import CheckpointError, WeightsError

TENSORS = {"first.weight": torch.arange(6.0).view(2, 3), "first.bias": torch.tensor([1.0, 2.0]), "last": torch.ones(4)}
PLACES = {"first.weight": "part-1-of-2.xyz", "first.bias": "part-2-of-2.xyz", "last": "part-1-of-2.xyz"}


def write(path, tensors):
    if path.suffix == ".safetensors":
        save_file(tensors, path)
    else:
        torch.save(tensors, path)


def write_shards(folder, stem, places=PLACES):
    ending = stem.rpartition(".")[2]
    for name in set(PLACES.values()):
        held = {key: TENSORS[key] for key, place in PLACES.items() if place == name}
        write(folder / name.replace("xyz", ending), held)
    index = {"metadata": {}, "weight_map": {key: place.replace("xyz", ending) for key, place in places.items()}}
    (folder / f"{stem}.index.json").write_text(json.dumps(index), encoding="utf-8")


def assert_same(read):
    assert read.keys() == TENSORS.keys()
    assert all(torch.equal(read[name], tensor) for name, tensor in TENSORS.items())


@pytest.mark.parametrize("stem", ["model.safetensors", "pytorch_model.bin"])
def test_one_file_and_its_shards_read_alike(tmp_path, stem):
    (tmp_path / "one").mkdir()
    write(tmp_path / "one" / stem, TENSORS)
    assert_same(read_tensors(tmp_path / "one"))
    write_shards(tmp_path, stem)
    assert_same(read_tensors(tmp_path))


@pytest.mark.parametrize("sharded", [False, True])
def test_safetensors_win_over_a_pickle(tmp_path, sharded):
    write(tmp_path / "pytorch_model.bin", {"old": torch.zeros(1)})
    if sharded:
        write_shards(tmp_path, "model.safetensors")
    else:
        write(tmp_path / "model.safetensors", TENSORS)
    assert_same(read_tensors(tmp_path))


@pytest.mark.parametrize("name", ["../secret.xyz", "/etc/passwd", "sub/part.xyz", "..", "", "C:part.xyz", "a\\b.xyz"])
def test_an_index_that_names_a_file_elsewhere_is_refused(tmp_path, name):
    write_shards(tmp_path, "model.safetensors", PLACES | {"last": name})
    with pytest.raises(CheckpointError, match="not a file of this folder"):
        read_tensors(tmp_path)


@pytest.mark.parametrize("index", ["{", "[]", '{"weight_map": 3}', '{"weight_map": {"last": 3}}', "{}"])
def test_a_damaged_index_is_refused(tmp_path, index):
    (tmp_path / "model.safetensors.index.json").write_text(index, encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"model\.safetensors\.index\.json is damaged"):
        read_tensors(tmp_path)


def test_a_missing_shard_is_named(tmp_path):
    write_shards(tmp_path, "model.safetensors")
    (tmp_path / "part-2-of-2.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"part-2-of-2\.safetensors is missing"):
        read_tensors(tmp_path)


@pytest.mark.parametrize("places", [PLACES | {"more": "part-1-of-2.xyz"}, {"last": "part-1-of-2.xyz"}])
def test_shards_that_hold_other_tensors_than_the_index_says_are_refused(tmp_path, places):
    write_shards(tmp_path, "model.safetensors", places)
    with pytest.raises(CheckpointError, match="does not hold what"):
        read_tensors(tmp_path)


def test_a_folder_without_weights_is_refused_in_a_sentence_with_the_cure(tmp_path):
    with pytest.raises(WeightsError, match=r"neither model\.safetensors nor pytorch_model\.bin.* Download it again"):
        read_tensors(tmp_path)


@pytest.mark.parametrize("stem", ["model.safetensors", "pytorch_model.bin"])
@pytest.mark.parametrize("kept", [0, 7, -20])
def test_a_file_that_was_cut_off_is_named(tmp_path, stem, kept):
    write(tmp_path / stem, TENSORS)
    (tmp_path / stem).write_bytes((tmp_path / stem).read_bytes()[:kept])
    with pytest.raises(CheckpointError, match=f"{stem} is damaged"):
        read_tensors(tmp_path)


class Intruder:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return self.path.touch, ()


def test_a_pickle_that_would_run_code_is_refused_and_does_not_run_it(tmp_path):
    torch.save({"last": torch.ones(1), "more": Intruder(tmp_path / "was-here")}, tmp_path / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match="holds more than tensors"):
        read_tensors(tmp_path)
    assert not (tmp_path / "was-here").exists()


@pytest.mark.parametrize("content", [{"step": 3}, [torch.ones(1)], {3: torch.ones(1)}])
def test_a_pickle_of_anything_but_named_tensors_is_refused(tmp_path, content):
    torch.save(content, tmp_path / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match="holds more than tensors"):
        read_tensors(tmp_path)


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 2)
        self.register_buffer("last", torch.zeros(4))


def small_on_meta():
    with torch.device("meta"):
        return Small()


def test_a_module_on_the_meta_device_takes_the_very_tensors():
    module = small_on_meta()
    load_strictly(module, TENSORS, source="here")
    assert_same(module.state_dict())
    assert module.first.weight.data_ptr() == TENSORS["first.weight"].data_ptr()
    assert isinstance(module.first.weight, nn.Parameter)


def test_the_module_says_which_dtype_it_wants():
    module = small_on_meta()
    module.first.to(torch.bfloat16)
    load_strictly(module, {name: tensor.half() for name, tensor in TENSORS.items()}, source="here")
    assert [tensor.dtype for tensor in module.state_dict().values()] == [torch.float32, torch.bfloat16, torch.bfloat16]


def test_every_fault_is_counted_the_first_are_named_and_the_module_stays_as_it_was():
    module = Small()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    tensors = {"first.weight": torch.ones(3, 2), "last": torch.ones(4)} | {f"x{n}": torch.ones(1) for n in range(5)}
    with pytest.raises(CheckpointError) as raised:
        load_strictly(module, tensors, source="the/folder")
    text = str(raised.value)
    assert "the/folder" in text
    assert "1 tensors are missing: first.bias" in text
    assert "5 tensors are unknown: x0, x1, x2 and 2 more" in text
    assert "1 tensors are of another shape: first.weight" in text
    assert all(torch.equal(before[name], tensor) for name, tensor in module.state_dict().items())


def test_ignored_tensors_may_be_there_or_not_and_no_other_may():
    load_strictly(small_on_meta(), TENSORS | {"more": torch.ones(1)}, source="here", ignored=["more", "absent"])
    with pytest.raises(CheckpointError, match="unknown: other"):
        load_strictly(small_on_meta(), TENSORS | {"other": torch.ones(1)}, source="here", ignored=["more"])


def test_a_derived_buffer_that_no_file_fills_does_not_pass_as_loaded():
    module = small_on_meta()
    module.register_buffer("frequencies", torch.ones(2, device="meta"), persistent=False)
    with pytest.raises(AssertionError, match="frequencies"):
        load_strictly(module, TENSORS, source="here")


def test_a_tied_parameter_counts_once():
    module = nn.ModuleDict({"embedding": nn.Embedding(5, 3), "head": nn.Linear(3, 5, bias=False)})
    assert parameter_total(module) == 30
    module["head"].weight = module["embedding"].weight
    assert parameter_total(module) == 15


def normalised():
    torch.manual_seed(0)
    module = nn.Conv1d(3, 4, 2)
    nn.utils.parametrizations.weight_norm(module)
    module.state_dict()["parametrizations.weight.original0"].uniform_(0.5, 2.0)
    return module


def old_spelling(tensors):
    names = {"parametrizations.weight.original0": "weight_g", "parametrizations.weight.original1": "weight_v"}
    return {names.get(name, name): tensor for name, tensor in tensors.items()}


@pytest.mark.parametrize("spelling", [dict, old_spelling])
def test_both_spellings_of_a_normalised_weight_fold_into_the_weight_that_torch_computes(spelling):
    module = normalised()
    stored = {f"layer.{name}": tensor for name, tensor in spelling(module.state_dict()).items()}
    folded = fold_weight_norms(stored, source="here")
    assert folded.keys() == {"layer.weight", "layer.bias"}
    torch.testing.assert_close(folded["layer.weight"], module.weight.detach(), rtol=3e-7, atol=1e-7)
    assert torch.equal(folded["layer.bias"], module.state_dict()["bias"])


def test_a_folded_weight_is_float32_whatever_it_was_stored_as():
    halves = {f"layer.{name}": tensor.half() for name, tensor in normalised().state_dict().items()}
    assert fold_weight_norms(halves, source="here")["layer.weight"].dtype == torch.float32


@pytest.mark.parametrize(
    "change",
    [
        lambda tensors: tensors.pop("l.weight_g"),
        lambda tensors: tensors.pop("l.weight_v"),
        lambda tensors: tensors.update({"l.weight": torch.ones(4, 3, 2)}),
        lambda tensors: tensors.update({"l.weight_g": torch.ones(1, 3, 1)}),
        lambda tensors: tensors.update({"l.weight_v": torch.tensor(1.0)}),
    ],
)
def test_a_normalised_weight_that_is_not_one_whole_pair_is_refused(change):
    tensors = {f"l.{name}": tensor for name, tensor in old_spelling(normalised().state_dict()).items()}
    change(tensors)
    with pytest.raises(CheckpointError, match="normalised weight of l "):
        fold_weight_norms(tensors, source="here")


def test_a_tied_duplicate_is_dropped_where_it_is_there():
    tied = {"head": torch.ones(2), "embedding": torch.ones(2), "bias": torch.zeros(1)}
    assert drop_tied(tied, {"head": "embedding"}, source="here").keys() == {"embedding", "bias"}
    assert drop_tied(TENSORS, {"head": "last"}, source="here").keys() == TENSORS.keys()


def test_a_tied_duplicate_that_differs_is_refused():
    with pytest.raises(CheckpointError, match="head should equal embedding"):
        drop_tied({"head": torch.tensor([1.0, 2.0]), "embedding": torch.ones(2)}, {"head": "embedding"}, source="here")
