"""LPIPS against its formula on torchvision's AlexNet, and what a distance of images must do."""

import pytest
import torch

from matroot import models as models  # before torchvision
from matroot.models.lpips import SMALLEST, LpipsError, load_lpips, lpips

# isort: split
from torchvision.models import alexnet

RELUS = (1, 4, 7, 9, 11)
"""Places of torchvision's features whose outputs are compared."""


@pytest.fixture(scope="module")
def network():
    """AlexNet's convolutions with random weights."""
    with torch.device("meta"):
        features = alexnet().features
    features = features.to_empty(device="cpu")
    generator = torch.Generator().manual_seed(0)
    for parameter in features.parameters():
        fan = max(parameter[0].numel(), 1)
        torch.nn.init.normal_(parameter.data, std=(2 / fan) ** 0.5 if parameter.ndim > 1 else 0.1, generator=generator)
    return features.requires_grad_(False)


@pytest.fixture(scope="module")
def heads():
    generator = torch.Generator().manual_seed(1)
    return [torch.rand(1, channels, 1, 1, generator=generator) for channels in (64, 192, 384, 256, 256)]


@pytest.fixture(scope="module")
def file(network, heads, tmp_path_factory):
    path = tmp_path_factory.mktemp("lpips") / "weights.pth"
    content = {f"features.{name}": tensor for name, tensor in network.state_dict().items()}
    torch.save(content | {f"lpips.lin{k}.weight": head for k, head in enumerate(heads)}, path)
    return path


def pictures(seed, count=3):
    return torch.rand(count, 3, 48, 64, generator=torch.Generator().manual_seed(seed))


def test_the_formula(network, heads, file):
    """Image by image and position by position, in float64."""
    x, y = pictures(0), pictures(1)
    found = lpips(x, y, file)
    assert (found.shape, found.dtype) == ((3,), torch.float32)
    shift = torch.tensor([-0.030, -0.088, -0.188]).double().view(3, 1, 1)
    scale = torch.tensor([0.458, 0.448, 0.450]).double().view(3, 1, 1)
    network.double()
    for k in range(3):
        a, b = ((2 * image[k : k + 1].double() - 1 - shift) / scale for image in (x, y))
        total = 0.0
        for place, layer in enumerate(network[: RELUS[-1] + 1]):
            a, b = layer(a), layer(b)
            if place in RELUS:
                head = heads[RELUS.index(place)].double().flatten()
                position_wise = [
                    (head * (u / u.norm() - v / v.norm()) ** 2).sum()
                    for u, v in zip(a[0].flatten(1).T, b[0].flatten(1).T, strict=True)
                ]
                total += sum(position_wise) / len(position_wise)
        assert found[k].item() == pytest.approx(float(total), rel=1e-4)
    network.float()


def test_a_default_device_changes_nothing(file):
    x, y = pictures(0), pictures(1)
    with torch.device("meta"):
        found = lpips(x, y, file)
    assert torch.equal(found, lpips(x, y, file))


def test_a_distance(file):
    metric = load_lpips(file)
    x, y = pictures(0), pictures(1)
    assert not metric(x, x).any()
    assert torch.equal(metric(x, y), metric(y, x))
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(2))
    rising = torch.stack([metric(x, x + size * noise) for size in (0.01, 0.05, 0.2, 0.5)])
    assert (rising.diff(dim=0) > 0).all()
    assert torch.equal(metric(x, y)[1:], metric(x[1:], y[1:]))


def test_gradients_are_finite_for_equal_images_and_dead_features(file):
    x = pictures(0).requires_grad_()
    metric = load_lpips(file)
    for bias in metric.convolutions[2].bias, metric.convolutions[4].bias:
        bias.fill_(-1e3)  # no feature is above 0
    (metric(x, x.detach()) + metric(x, pictures(1))).sum().backward()
    assert torch.isfinite(x.grad).all()
    assert x.grad.any()
    assert not any(parameter.requires_grad for parameter in metric.parameters())


def test_half_precision_weights_are_read(file, tmp_path):
    content = {name: tensor.half() for name, tensor in torch.load(file, weights_only=True).items()}
    torch.save(content, tmp_path / "half.pth")
    x, y = pictures(0), pictures(1)
    # eleven bits of each weight, averaged over many
    torch.testing.assert_close(lpips(x, y, tmp_path / "half.pth"), lpips(x, y, file), rtol=1e-3, atol=0)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((1, 3, 48, 48), (1, 3, 48, 47)),
        ((1, 1, 48, 48), (1, 1, 48, 48)),
        ((3, 48, 48), (3, 48, 48)),
        ((1, 3, 48, SMALLEST - 1), (1, 3, 48, SMALLEST - 1)),
    ],
)
def test_images_that_do_not_fit(first, second, file):
    with pytest.raises(ValueError, match=r"expected two batches \(B, 3, H, W\)"):
        lpips(torch.zeros(first), torch.zeros(second), file)


def test_the_smallest_image(file):
    zeros = torch.zeros(1, 3, SMALLEST, SMALLEST)
    assert lpips(zeros, zeros + 1, file) > 0


def test_files_that_are_none(file, tmp_path):
    with pytest.raises(LpipsError, match="there is no file"):
        load_lpips(tmp_path / "missing.pth")
    (tmp_path / "text.pth").write_text("no weights")
    with pytest.raises(LpipsError, match=r"text.pth cannot be read as weights of torch"):
        load_lpips(tmp_path / "text.pth")
    content = torch.load(file, weights_only=True)
    content["features.3.weight"] = torch.zeros(2, 2)
    torch.save(content, tmp_path / "other.pth")
    with pytest.raises(LpipsError, match=r"expected features.3.weight of .*5, 5\), found a tensor \(2, 2\)"):
        load_lpips(tmp_path / "other.pth")
    torch.save([1], tmp_path / "list.pth")
    with pytest.raises(LpipsError, match=r"expected features.0.weight of shape .*, found none"):
        load_lpips(tmp_path / "list.pth")
