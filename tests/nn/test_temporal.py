"""Temporal covariances and attention against loops over frames."""

import pytest
import torch

from matroot.nn import CovariancePool, TemporalAttention, TemporalCovariancePool, covariance, untriangle

from ..matrices import exact_root


def clip(*shape, dtype=torch.float64):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).to(dtype)


def temporal_covariance(video, frame, window):
    """The sum over all pairs of frames in the window, as it is written in the paper."""
    reach, last = window // 2, video.shape[2] - 1
    frames = []
    for l in range(frame - reach, frame + reach + 1):  # noqa: E741 (the paper's letter)
        X = video[:, :, min(max(l, 0), last)].flatten(2)
        frames.append(X - X.mean(-1, keepdim=True))
    intra = sum(X @ X.mT for X in frames)
    inter = sum(X @ Y.mT for i, X in enumerate(frames) for j, Y in enumerate(frames) if i != j)
    return (intra + inter) / frames[0].shape[-1]


@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("window", [1, 3, 5])
def test_is_the_paper_s_sum(window, length):
    video = clip(2, 4, length, 3, 5)
    pool = TemporalCovariancePool(window, per_frame=True, root=False, triangle=False)
    expected = torch.stack([temporal_covariance(video, frame, window) for frame in range(length)], 1)
    # another order of summation
    torch.testing.assert_close(pool(video), expected, rtol=1e-12, atol=1e-12)
    mean = TemporalCovariancePool(window, root=False, triangle=False)(video)
    torch.testing.assert_close(mean, expected.mean(1), rtol=1e-12, atol=1e-12)
    root = untriangle(TemporalCovariancePool(window)(video))
    torch.testing.assert_close(root, exact_root(expected.mean(1)), rtol=1e-9, atol=1e-9)


def test_window_of_one_is_one_covariance_per_frame():
    video = clip(2, 4, 3, 3, 5)
    roots = TemporalCovariancePool(window=1, per_frame=True)(video)
    for frame in range(3):
        torch.testing.assert_close(roots[:, frame], CovariancePool(4, None)(video[:, :, frame]), rtol=1e-9, atol=1e-9)


def test_a_still_video_gives_the_root_of_its_frame():
    """All nine terms are equal, and three times the root."""
    image = clip(2, 4, 3, 5)
    found = TemporalCovariancePool(window=3)(image[:, :, None].expand(-1, -1, 6, -1, -1))
    torch.testing.assert_close(found, 3 * CovariancePool(4, None)(image), rtol=1e-9, atol=1e-9)


def test_between_frames_counts():
    """Frames that cancel have covariances of their own, and none together."""
    image = clip(1, 4, 1, 3, 5)
    video = torch.cat([image, -2 * image, image], 2)
    middle = TemporalCovariancePool(window=3, per_frame=True, root=False)(video)[:, 1]
    assert middle.abs().max() < 1e-14 < covariance(image).abs().max()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_frames_are_added_in_float32(dtype):
    """The only rounding in half precision is that of the result: half a unit in the last place."""
    video = clip(2, 4, 3, 3, 5, dtype=dtype)
    pool = TemporalCovariancePool()
    found, expected = pool(video).double(), pool(video.double())
    torch.testing.assert_close(found, expected, rtol=0.5 * torch.finfo(dtype).eps, atol=1e-5)


def test_temporal_pool_refuses():
    with pytest.raises(ValueError, match=r"5 dimensions \(B, C and 3 more\); got 4"):
        TemporalCovariancePool()(clip(2, 4, 3, 5))
    for layer in (TemporalCovariancePool, TemporalAttention):
        for window in (0, 2, -1):
            with pytest.raises(ValueError, match=f"odd and positive, got {window}"):
                layer(window=window)


# --- attention -----------------------------------------------------------------------------------


def attention(channels=4, **kwargs):
    """A layer none of whose parts is zero."""
    torch.manual_seed(0)
    layer = TemporalAttention(channels, **kwargs).double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(std=0.5)
    return layer


def reference(layer, video):
    """Frame by frame, position by position, in evaluation."""
    B, C, T, H, W = video.shape
    flat = video.flatten(3)

    def phi(convolution, frame):
        frame = flat[:, :, max(frame, 0)]
        return convolution.weight.flatten(1) @ frame + convolution.bias[:, None]

    def gate(difference):
        first, _, second, _ = layer.gate
        hidden = (difference @ first.weight[..., 0].T + first.bias).relu()
        return (hidden @ second.weight[..., 0].T + second.bias).sigmoid()

    mean = flat.mean(-1)
    attended = []
    for t in range(T):
        S = torch.softmax(phi(layer.query, t - 1).mT @ phi(layer.key, t - 2) / C**0.5, -1)
        spatial = phi(layer.value, t) @ S.mT
        norm = layer.norm
        spatial = (spatial - norm.running_mean[:, None]) / (norm.running_var[:, None] + norm.eps).sqrt()
        spatial = spatial * norm.weight[:, None] + norm.bias[:, None]
        gates = gate(mean[..., t] - mean[..., t - 1]), gate((mean[..., t] - mean[..., (t - 2) % T]) / 2)
        attended.append((flat[:, :, t] + spatial) * (sum(gates) / 2)[..., None])
    out = []
    reach = layer.window // 2
    for t in range(T):
        total = layer.temporal.bias[:, None] + attended[t]
        for k in range(layer.window):
            total = total + layer.temporal.weight[:, :, k, 0, 0] @ attended[(t + k - reach) % T]
        out.append(total.relu())
    return torch.stack(out, 2).reshape(B, C, T, H, W)


@pytest.mark.parametrize(("length", "window"), [(1, 5), (2, 5), (3, 3), (7, 5)])
def test_is_the_loop_over_frames(length, window):
    layer, video = attention(window=window).eval(), clip(2, 4, length, 2, 3)
    layer.norm.running_mean.normal_()
    torch.testing.assert_close(layer(video), reference(layer, video), rtol=1e-11, atol=1e-11)


def test_starts_as_a_gate():
    """Norm and temporal convolution are zero, in training too; gates lie between 0 and 1."""
    layer, video = TemporalAttention(4).double(), clip(2, 4, 5, 2, 3)
    found = layer(video)
    torch.testing.assert_close(found, (video * layer._in_channels(video)).relu(), rtol=1e-12, atol=1e-12)
    assert (found[video > 0] < video[video > 0]).all()
    assert (found[video > 0] > 0).all()


def test_all_parts_learn_from_the_start():
    """Zero parts have gradients, though what is behind them has none yet."""
    layer, video = TemporalAttention(4), clip(2, 4, 5, 2, 3, dtype=torch.float32)
    layer(video).square().sum().backward()
    for part in (layer.norm.weight, layer.temporal.weight, layer.gate[0].weight):
        assert part.grad.abs().max() > 0


def test_attention_then_one_covariance_per_video():
    """Sizes of the paper's head, on small frames."""
    head = torch.nn.Sequential(TemporalAttention(128), CovariancePool(128, None, dims=3))
    assert head(clip(1, 128, 8, 2, 2, dtype=torch.float32)).shape == (1, 8256)


def test_attention_refuses():
    with pytest.raises(ValueError, match=r"4 channels; got 3, shape \(1, 3, 2, 2, 2\)"):
        TemporalAttention(4)(torch.ones(1, 3, 2, 2, 2))
    with pytest.raises(ValueError, match=r"5 dimensions \(B, C and 3 more\); got 4"):
        TemporalAttention(4)(torch.ones(1, 4, 2, 2))


@pytest.mark.parametrize("sizes", [{"channels": 0}, {"expansion": 0}])
def test_sizes_below_one(sizes):
    with pytest.raises(ValueError, match=f"{next(iter(sizes))} must be at least 1, got 0"):
        TemporalAttention(**sizes)
