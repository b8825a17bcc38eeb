"""The networks as timm's users meet them."""

import subprocess
import sys

import pytest
import torch

from matroot import models

from .networks import REDUCED, build, inputs

timm = pytest.importorskip("timm")


def create(name, **options):
    torch.manual_seed(0)
    return timm.create_model(f"matroot_{name}", **{**REDUCED[name].options, **options})


def test_timm_lists_them():
    assert set(timm.list_models("matroot_*")) == {f"matroot_{name}" for name in models.list_models()}
    assert not timm.list_models("matroot_*", pretrained=True)


@pytest.mark.parametrize("name", REDUCED)
def test_they_are_the_same_networks(name):
    model = create(name, num_classes=4, preset="mpa-lya")
    assert torch.equal(model(inputs(name)), build(name, "mpa-lya")(inputs(name)))
    assert model.arguments == build(name, "mpa-lya").arguments


def test_a_full_network():
    model = timm.create_model("matroot_resnet18_dbn", num_classes=7)
    assert model.num_classes == 7
    assert model.get_classifier().weight.shape == (7, 512)
    x = torch.randn(2, 3, 32, 32)
    assert model.forward_features(x).shape == (2, 512, 4, 4) == (2, model.num_features, 4, 4)
    assert model(x).shape == (2, 7)
    model.reset_classifier(0)
    assert model(x).shape == (2, 512) == (2, model.head_hidden_size)
    model.reset_classifier(3)
    assert model(x).shape == (2, 3)


@pytest.mark.parametrize("name", REDUCED)
def test_the_configuration_describes_the_network(name):
    model, published = create(name), models._registry.find(name)
    cfg = model.default_cfg
    assert cfg is model.pretrained_cfg
    assert cfg["architecture"] == f"matroot_{name}"
    assert cfg["num_classes"] == model.num_classes == timm.get_pretrained_cfg(f"matroot_{name}").num_classes
    assert model.get_submodule(cfg["first_conv"]).weight.shape[1] == cfg["input_size"][0] == 3
    for layer in published.classifier:
        assert model.get_submodule(layer).weight.shape[0] == model.num_classes
    data = timm.data.resolve_data_config({}, model=model)
    assert data["input_size"] == (3, published.images.size, published.images.size)
    assert (data["mean"], data["std"]) == (published.images.mean, published.images.std)


def test_images_of_the_published_runs():
    cifar = timm.get_pretrained_cfg("matroot_resnet18_dbn")
    assert (cifar.input_size, cifar.crop_pct, cifar.mean[0], cifar.num_classes) == ((3, 32, 32), 1.0, 0.4914, 10)
    imagenet = timm.get_pretrained_cfg("matroot_resnet50_gcp")
    assert (imagenet.input_size, imagenet.crop_pct, imagenet.num_classes) == ((3, 224, 224), 0.875, 1000)


def test_options_in_the_words_of_timm():
    model = create("resnet50_gcp", in_chans=1, img_size=224, num_classes=2)
    assert model.conv1.weight.shape[1:] == (1, 7, 7)
    # As timm's training script calls it.
    create("resnet18_dbn", drop_rate=0.0, drop_path_rate=None, global_pool=None, in_chans=3, cache_dir="nowhere")
    with pytest.raises(TypeError, match="resnet18_dbn has no option 'dropout'"):
        create("resnet18_dbn", drop_rate=0.2)
    with pytest.raises(TypeError, match="resnet18_dbn has no option 'features_only'"):
        create("resnet18_dbn", features_only=True)


def test_configurations_of_the_caller():
    model = create("resnet18_dbn", pretrained_cfg_overlay={"mean": (0.5, 0.5, 0.5)})
    assert model.default_cfg["mean"] == (0.5, 0.5, 0.5)
    assert create("resnet18_dbn").default_cfg["mean"] != (0.5, 0.5, 0.5)
    assert create("resnet18_dbn", pretrained_cfg={"num_classes": 6}).num_classes == 6
    assert create("resnet18_dbn", pretrained_cfg={"num_classes": 6}, num_classes=3).num_classes == 3


def test_there_are_no_pretrained_weights():
    with pytest.raises(ValueError, match="no published weights of resnet18_dbn"):
        create("resnet18_dbn", pretrained=True)
    with pytest.raises(RuntimeError, match="Invalid pretrained tag"):
        timm.create_model("matroot_resnet18_dbn.imagenet")


def test_checkpoints_of_timm(tmp_path):
    model, path = build("resnet18_dbn"), tmp_path / "checkpoint.pth"
    torch.save({"state_dict": model.state_dict()}, path)
    again = create("resnet18_dbn", num_classes=4, preset="ns", checkpoint_path=str(path))
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name]), name


def test_timm_is_not_needed_and_importing_says_nothing():
    code = """
import sys
sys.modules["timm"] = None
from matroot import models
print(models.create("resnet18_dbn", width=4).num_classes)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "10\n", "")
