"""The teacher: shapes, the layers one by one, and files that are something else."""

import pytest
import torch
from torch import nn

from matroot.style.distillation.teacher import Teacher, TeacherError, load_teacher

from .tiny import teacher_state


def as_sequential(state):
    """The published layout, layer by layer: the numbers of the tensors are positions in it."""

    def convolution(name):
        weight = state[f"{name}.weight"].float()
        layer = nn.Conv2d(weight.shape[1], weight.shape[0], weight.shape[2])
        layer.load_state_dict({"weight": weight, "bias": state[f"{name}.bias"].float()})
        return layer

    last = max(int(name.partition(".")[0]) for name in state)
    return [convolution(k) if f"{k}.weight" in state else None for k in range(last + 1)]


def filled(layers, kinds):
    """Layers with the others by position: p pads, r is ReLU, m pools, u upsamples."""
    others = {
        "p": nn.ReflectionPad2d(1),
        "r": nn.ReLU(),
        "m": nn.MaxPool2d(2, ceil_mode=True),
        "u": nn.Upsample(scale_factor=2, mode="nearest"),
    }
    assert len(layers) == len(kinds)
    return nn.Sequential(*(layer or others[kind] for layer, kind in zip(layers, kinds, strict=True)))


@pytest.mark.parametrize("size", [(16, 24), (21, 35)])
def test_features_and_pictures_are_those_of_the_published_layout(size):
    """Kinds by position; c is a convolution. Float32 convolutions in another memory format: 1e-5 relative."""
    state = teacher_state()
    teacher = Teacher(state)
    images = torch.rand(2, 3, *size, generator=torch.Generator().manual_seed(0))
    encoder = filled([*as_sequential(state["encoder"]), None], "cpcrpcrmpcrpcrmpcrpcrpcrpcrmpcr")
    expected, x = [], images
    for k, layer in enumerate(encoder):
        x = layer(x)
        if k in (3, 10, 17, 30):
            expected.append(x)
    found = teacher.encode(images)
    assert [x.shape[2:] for x in found] == [torch.Size(-(-side // s) for side in size) for s in (1, 2, 4, 8)]
    torch.testing.assert_close(list(found), expected, rtol=1e-5, atol=1e-5)
    decoder = filled(as_sequential(state["decoder"]), "pcrupcrpcrpcrpcrupcrpcrupcrpc")
    torch.testing.assert_close(teacher.decode(found[-1]), decoder(found[-1]), rtol=1e-5, atol=1e-5)


def test_gradients_reach_the_images_alone():
    teacher = Teacher(teacher_state())
    images = torch.rand(1, 3, 16, 16, requires_grad=True)
    teacher.encode(images)[-1].sum().backward()
    assert images.grad is not None
    assert images.grad.abs().sum() > 0
    assert all(parameter.grad is None for parameter in teacher.parameters())


def test_the_teachers_picture_has_the_size_of_the_content():
    teacher = Teacher(teacher_state())
    content, style = (teacher.encode(torch.rand(2, 3, *size))[-1] for size in ((32, 24), (40, 40)))
    picture = teacher.transfer(content, style, 0.6)
    assert picture.shape == (2, 3, 32, 24)
    assert 0 <= picture.min() <= picture.max() <= 1
    torch.testing.assert_close(teacher.transfer(content, style, 0.0), teacher.decode(content).clamp(0, 1))


def test_images_that_reflection_cannot_pad_are_refused():
    with pytest.raises(ValueError, match=r"16 pixels a side, got \(15, 40\)"):
        Teacher(teacher_state()).encode(torch.rand(1, 3, 15, 40))


def without(state):
    del state["decoder"]["8.bias"]


def another_width(state):
    state["encoder"]["12.weight"] = torch.zeros(5, 4, 3, 3)


def another_bias(state):
    state["encoder"]["12.bias"] = torch.zeros(4)


def grey(state):
    state["decoder"]["28.weight"], state["decoder"]["28.bias"] = torch.zeros(1, 4, 3, 3), torch.zeros(1)


def another_bottleneck(state):
    state["decoder"]["1.weight"] = torch.zeros(6, 8, 3, 3)


def no_decoder(state):
    del state["decoder"]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (without, r"wrong: 8\.bias"),
        (another_width, r"encoder 12 must have a weight \(5, 5, 3, 3\)"),
        (another_bias, r"got \(5, 5, 3, 3\) and \(4,\)"),
        (grey, "reads 3 channels and gives 1"),
        (another_bottleneck, "gives 7 channels and its decoder reads 8"),
        (no_decoder, "weights of 'decoder'"),
    ],
)
def test_other_tables_are_refused_by_name(spoil, message, tmp_path):
    state = teacher_state()
    spoil(state)
    torch.save(state, tmp_path / "other.pth")
    with pytest.raises(TeacherError, match=f"other.pth: .*{message}"):
        load_teacher(tmp_path / "other.pth")


def test_files_that_are_no_weights_are_refused(tmp_path):
    with pytest.raises(TeacherError, match="there is no file"):
        load_teacher(tmp_path / "missing.pth")
    (tmp_path / "text.pth").write_text("no weights")
    with pytest.raises(TeacherError, match=r"text\.pth is no file of weights"):
        load_teacher(tmp_path / "text.pth")
    torch.save([1, 2], tmp_path / "list.pth")
    with pytest.raises(TeacherError, match=r"list\.pth: expected the weights of 'encoder'"):
        load_teacher(tmp_path / "list.pth")
