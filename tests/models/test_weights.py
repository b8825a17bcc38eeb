"""Files of weights."""

import json
import re

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import matroot
from matroot import models
from matroot._terminal import CommandError
from matroot.models import WeightsError
from matroot.models.weights import FORMAT

from .networks import REDUCED, build, inputs


@pytest.fixture
def path(tmp_path):
    return tmp_path / "weights.safetensors"


def assert_same(one, other):
    other = other.state_dict()
    for name, tensor in one.state_dict().items():
        assert torch.equal(tensor, other[name]), name


def rewrite(path, change=lambda tensors, metadata: None):
    """Write the file again after a change to its tensors and metadata."""
    with safe_open(path, framework="pt") as file:
        metadata = dict(file.metadata())
    tensors = load_file(path)
    change(tensors, metadata)
    save_file(tensors, path, metadata)


@pytest.mark.parametrize("name", REDUCED)
def test_a_network_comes_back(name, path):
    model = build(name, "ns")
    model(inputs(name))  # statistics that are not the initial ones
    models.save(model, path)
    again = models.load(path)
    assert again.arguments == model.arguments
    assert_same(model, again)
    assert torch.equal(again.eval()(inputs(name)), model.eval()(inputs(name)))


def test_a_network_that_was_changed_comes_back(path):
    model = build("resnet18_dbn", method=matroot.Pade(degree=7), gradient="exact")
    models.set_preset(model, "mpa-lya")
    model.reset_classifier(9)
    models.save(model, path)
    again = models.load(path)
    assert (again.num_classes, again.bn1.method, again.bn1.gradient) == (9, matroot.Pade(), matroot.Lyapunov())
    assert_same(model, again)


def test_layout_shared_memory_and_default_device_do_not_matter(path):
    model = build("resnet18_dbn").to(memory_format=torch.channels_last)
    model.layer1[1].conv1.weight = model.layer1[0].conv1.weight
    with torch.device("meta"):
        models.save(model, str(path))
    assert_same(model, models.load(str(path)))
    plain = load_file(path)["conv1.weight"]
    assert plain.is_contiguous()


def test_a_compiled_network_is_saved_as_itself(path):
    model = build("resnet18_dbn")
    models.save(torch.compile(model), path)
    assert_same(model, models.load(path))


def test_the_format_is_said(path):
    models.save(build("resnet18_dbn"), path)
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
    assert metadata["format"] == FORMAT == "matroot-weights 1"
    assert json.loads(metadata["arguments"])["name"] == "resnet18_dbn"


def test_the_same_weights_are_the_same_bytes(path):
    """safetensors has an order of chance for metadata, another one at each call."""
    torch.manual_seed(0)
    model = build("resnet18_dbn")
    found = set()
    for _ in range(20):
        models.save(model, path)
        found.add(path.read_bytes())
    assert len(found) == 1
    size = int.from_bytes(path.read_bytes()[:8], "little")
    assert size % 8 == 0  # tensors are aligned


def test_a_classifier_of_another_number_of_classes_is_left_out(path):
    source, target = build("resnet50_gcp", num_classes=6), build("resnet50_gcp", "mpa-lya", num_classes=4)
    classifier = target.fc.weight.detach().clone()
    with torch.no_grad():
        for parameter in source.parameters():
            parameter.add_(1)
    models.save(source, path)
    assert models.load_weights(target, path) == ["fc.bias", "fc.weight"]
    assert torch.equal(target.fc.weight, classifier)
    for name, tensor in target.state_dict().items():
        assert name.startswith("fc.") or torch.equal(tensor, source.state_dict()[name]), name

    headless = build("resnet50_gcp", num_classes=0)
    assert models.load_weights(headless, path) == ["fc.bias", "fc.weight"]
    same = build("resnet50_gcp", num_classes=6)
    assert models.load_weights(same, path) == []
    assert_same(source, same)


def test_weights_of_another_preset_are_taken(path):
    models.save(build("resnet18_dbn", "mpa-lya"), path)
    assert models.load_weights(build("resnet18_dbn"), path) == []


def damage(kind):
    """A change to the bytes of a file."""
    return {
        "empty": lambda data: b"",
        "text": lambda data: b"these are no weights, but some text that is long enough",
        "truncated header": lambda data: data[:100],
        "truncated": lambda data: data[:-1],
        "longer": lambda data: data + b"0",
    }[kind]


@pytest.mark.parametrize("kind", ["empty", "text", "truncated header", "truncated", "longer"])
def test_damaged_files(kind, path):
    models.save(build("resnet18_dbn"), path)
    path.write_bytes(damage(kind)(path.read_bytes()))
    with pytest.raises(WeightsError, match=f"{re.escape(str(path))} is no whole safetensors file"):
        models.load(path)


def rename(tensors, metadata):
    tensors["layer5.weight"] = tensors.pop("conv1.weight")


def add(tensors, metadata):
    tensors.update({f"extra{i}": torch.zeros(1) for i in range(5)})


def reshape(tensors, metadata):
    tensors["fc.bias"] = torch.zeros(5)


def halve(tensors, metadata):
    tensors["fc.bias"] = tensors["fc.bias"].half()


def other_format(tensors, metadata):
    metadata["format"] = "matroot-weights 2"


def no_format(tensors, metadata):
    del metadata["format"]


def no_arguments(tensors, metadata):
    metadata["arguments"] = "[]"


def spoilt_arguments(tensors, metadata):
    metadata["arguments"] = metadata["arguments"][:-1]


def other_options(tensors, metadata):
    metadata["arguments"] = metadata["arguments"].replace('"width"', '"breadth"')


CHANGES = {
    rename: "lacks tensors of this network: conv1.weight",
    add: "has tensors that this network has not: extra0, extra1, extra2 and 2 more",
    reshape: r"another shape: fc.bias \(5,\), expected \(4,\)",
    halve: "another dtype: fc.bias torch.float16, expected torch.float32",
    other_format: "of format 'matroot-weights 1'; its format is 'matroot-weights 2'",
    no_format: "of format 'matroot-weights 1'; its format is none",
    no_arguments: "does not say which network it is of",
    spoilt_arguments: "does not say which network it is of",
}


@pytest.mark.parametrize(("change", "message"), CHANGES.items())
def test_files_that_do_not_fit(change, message, path):
    model = build("resnet18_dbn")
    models.save(model, path)
    rewrite(path, change)
    with torch.no_grad():
        model.fc.bias.fill_(3)
    for call in (models.load, lambda path: models.load_weights(model, path)):
        with pytest.raises(WeightsError, match=message) as error:
            call(path)
        assert str(path) in str(error.value)
    assert torch.equal(model.fc.bias, torch.full((4,), 3.0)), "nothing is loaded of a file that does not fit"


def test_a_network_this_version_cannot_build(path):
    models.save(build("resnet18_dbn"), path)
    rewrite(path, other_options)
    with pytest.raises(WeightsError, match="cannot build: resnet18_dbn has no option 'breadth'"):
        models.load(path)


def test_weights_of_another_network(path):
    models.save(build("resnet18_dbn"), path)
    with pytest.raises(WeightsError, match="has the weights of resnet18_dbn; expected those of resnet50_gcp"):
        models.load_weights(build("resnet50_gcp"), path)
    with pytest.raises(WeightsError, match=r"lacks tensors of this network: bn1.running_var"):
        models.load_weights(build("resnet18_dbn", "baseline"), path)


def test_files_that_cannot_be_read_or_written(path):
    with pytest.raises(WeightsError, match=f"there is no file {re.escape(str(path))}"):
        models.load(path)
    path.mkdir()
    with pytest.raises(WeightsError, match=f"cannot read {re.escape(str(path))}"):
        models.load(path)
    with pytest.raises(WeightsError, match=f"cannot write {re.escape(str(path))}"):
        models.save(build("resnet18_dbn"), path)
    assert issubclass(WeightsError, CommandError)


def test_an_interrupted_save_leaves_the_file_as_it_was(path, fill_disk):
    model = build("resnet18_dbn")
    models.save(model, path)
    before = path.read_bytes()
    fill_disk()
    with pytest.raises(WeightsError, match="No space left on device"):
        models.save(build("resnet18_dbn", num_classes=7), path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_what_is_not_saved(path):
    with pytest.raises(WeightsError, match=r"in float32; this network has bn1.bias torch.bfloat16, .* more"):
        models.save(build("resnet18_dbn").bfloat16(), path)
    with pytest.raises(TypeError, match=r"expected a network of matroot.models.create, got another Linear"):
        models.save(torch.nn.Linear(2, 2), path)
    with pytest.raises(TypeError, match="got another Linear"):
        models.load_weights(torch.nn.Linear(2, 2), path)
    assert not path.exists()
