"""The weights that come with the package: what they say of themselves, and that they transfer styles of photographs."""

import json

import pytest
import torch
from safetensors import safe_open
from torch.nn import functional

from matroot import style
from matroot.style.distillation.recipe import Recipe
from matroot.style.weights import PACKAGED

from .examples import photograph

LEVEL = 1 / 255


@pytest.fixture(scope="module")
def network():
    return style.load()


@pytest.fixture(scope="module", params=[("china.jpg", "flower.jpg"), ("flower.jpg", "china.jpg")], ids=" like ".join)
def pair(request):
    return tuple(map(photograph, request.param))


@pytest.fixture(scope="module")
def picture(network, pair):
    return style.stylize(*pair, network=network)


def moments(image):
    return image.flatten(1).mean(1), torch.cov(image.flatten(1))


def edges(image):
    """Mean moduli of differences of neighbouring pixels, over squares of 8 x 8."""
    grey = image.mean(0)
    return functional.avg_pool2d((grey.diff(dim=0)[:, 1:].abs() + grey.diff(dim=1)[1:].abs())[None], 8).flatten()


def test_the_file_says_where_it_comes_from():
    assert PACKAGED.stat().st_size < 1e6
    with safe_open(PACKAGED, "pt") as file:
        metadata = file.metadata()
    assert metadata["licence"] == "MIT"
    assert "Monet" in metadata["training_data"]
    recipe = json.loads(metadata["recipe"])
    assert f"--steps {recipe['steps']} " in metadata["command"]
    assert len(recipe["channels"]) == 4
    assert "a fourth scale" in metadata["derived"]
    Recipe(**(recipe | {"channels": tuple(recipe["channels"][:3])}))  # what it names is still a recipe


def test_strength_zero_reproduces_the_photograph(network, pair):
    content, painting = pair
    reproduced = style.stylize(content, painting, strength=0.0, network=network)
    assert (reproduced - content).abs().mean() < 8 * LEVEL


def test_the_palette_is_that_of_the_style(pair, picture):
    content, painting = map(moments, pair)
    for found, before, wanted in zip(moments(picture), content, painting, strict=True):
        assert (found - wanted).norm() < 0.4 * (before - wanted).norm()


def test_at_two_scales_the_palette_is_closer(network, pair, picture):
    wanted = moments(pair[1])[1]
    distances = [(moments(x)[1] - wanted).norm() for x in (picture, style.stylize(*pair, scales=2, network=network))]
    assert distances[1] < 0.9 * distances[0]


def test_the_content_can_be_recognised(pair, picture):
    """Edges are where they were: a transfer that invents its own has them elsewhere, and a correlation near zero."""
    assert torch.corrcoef(torch.stack([edges(pair[0]), edges(picture)]))[0, 1] > 0.6


@pytest.mark.parametrize("transform", ["transport", "whitening"])
@pytest.mark.parametrize(("dtype", "mean", "largest"), [(torch.float16, 0.1, 1), (torch.bfloat16, 0.6, 10)])
def test_half_precision_looks_the_same(network, pair, dtype, mean, largest, transform):
    # The processor takes long over half precision: two thirds of the size.
    small = [functional.interpolate(x[None], size=(128, 192), mode="bilinear", antialias=True)[0] for x in pair]
    exact, found = (
        style.stylize(*small, transform=transform, network=net).float() for net in (network, style.load().to(dtype))
    )
    difference = (found - exact).abs()
    assert difference.mean() < mean * LEVEL
    assert difference.max() < largest * LEVEL


def test_roots_by_products_and_by_decompositions_give_one_picture(network, pair, picture):
    decomposed = style.stylize(*pair, network=network, method="eigen")
    assert (decomposed - picture).abs().max() < 0.5 * LEVEL


@pytest.mark.parametrize("k", range(3))
def test_every_transform_changes_the_picture(network, pair, k):
    """With the statistics of another painting at one depth alone."""
    content, painting = pair
    one, other = (network.statistics(x[None]) for x in (painting, content))
    swapped = style.StyleStatistics(
        *((*x[:k], y[k], *x[k + 1 :]) for x, y in ((one.means, other.means), (one.roots, other.roots)))
    )
    pictures = [style.apply_style(content, each, network=network) for each in (one, swapped)]
    assert (pictures[0] - pictures[1]).abs().mean() > LEVEL / 2


@pytest.fixture(scope="module")
def evening():
    """(3, 192, 192): a dark tower before a clear sky that varies by a level or so, and where its sky is."""
    down = torch.linspace(0, 1, 192)[:, None]
    sky = torch.stack([0.15 + 0.2 * down, 0.2 + 0.15 * down, 0.45 - 0.1 * down]).expand(-1, -1, 192)
    content = sky + LEVEL * torch.randn(3, 192, 192, generator=torch.Generator().manual_seed(0))
    content[:, 40:, 88:104] = 0.03
    content[:, 150:] = 0.1
    return content.clamp(0, 1)


def grain_of_sky(picture):
    """Standard deviation around means of 9 x 9, in the sky far from the tower."""
    grey = picture.mean(0)[None]
    return (grey - functional.avg_pool2d(grey, 9, 1, 4))[0, 16:128, 16:64].std()


def halo(picture):
    """Mean difference of the sky beside the tower from that some way off, in the same rows."""
    columns = picture[:, 60:130].mean(1)
    return (columns[:, 76:86].mean(1) - columns[:, 20:50].mean(1)).abs().mean()


@pytest.mark.parametrize("name", ["china.jpg", "flower.jpg"])
def test_clear_skies_have_no_grain_and_edges_less_of_a_halo(network, evening, name):
    painting = photograph(name)
    picture = style.stylize(evening, painting, network=network)
    whitened = style.stylize(evening, painting, transform="whitening", grain=0, network=network)
    assert grain_of_sky(picture) < 1 * LEVEL
    assert grain_of_sky(picture) < 0.2 * grain_of_sky(whitened)
    assert halo(picture) < 0.6 * halo(whitened)


def test_more_of_a_clear_sky_changes_the_rest_little(network):
    """As a flat area hardly counts in the statistics of the photo."""
    content, painting = photograph("china.jpg"), photograph("flower.jpg")
    sky = content[:, :1, :1].expand(-1, 2 * content.shape[1], content.shape[2])
    higher = torch.cat([sky, content], 1)

    def difference(**options):
        one, other = (style.stylize(x, painting, network=network, **options) for x in (content, higher))
        return (one - other[:, sky.shape[1] :])[:, 64:].abs().mean()

    assert difference() < 0.25 * difference(grain=0)


@pytest.mark.parametrize("period", [2, 4, 8])
def test_no_checkerboards(network, period):
    """On colours that vary smoothly the picture has no more of a period than of periods next to it."""
    ramp = torch.linspace(0.1, 0.9, 256).expand(256, 256)
    content = torch.stack([ramp, ramp.mT, 1 - ramp])
    picture = style.stylize(content, photograph("china.jpg"), network=network).mean(0)[None]
    detail = (picture - functional.avg_pool2d(picture, 17, 1, 8, count_include_pad=False))[0, 32:-32, 32:-32]
    for lines in (detail, detail.mT):
        power = torch.fft.rfft(lines, dim=1).abs().square().mean(0)
        k = lines.shape[1] // period
        assert power[k] < 3 * power[max(k - 3, 1) : k + 4].median()
