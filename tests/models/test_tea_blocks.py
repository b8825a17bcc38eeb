"""Blocks of TEA-ResNet against loops over frames, channels and splits."""

import pytest
import torch
from torch import nn

from matroot.models.tea_blocks import MotionExcitation, TEABlock, TemporalConvolution

# Both sides are float64, in other orders of summation.
CLOSE = {"rtol": 1e-10, "atol": 1e-10}


def video(*shape):
    """(B T, C, H, W)"""
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def randomised(layer):
    """Float64 in evaluation, with no weight and no statistic at its start."""
    torch.manual_seed(0)
    layer = layer.double().eval()
    with torch.no_grad():
        for name, value in layer.state_dict().items():
            if name.endswith("running_var"):
                value.uniform_(0.5, 2)
            elif value.is_floating_point():
                value.normal_(std=0.5)
    return layer


def normalised(norm, x):
    """Batch normalisation in evaluation, written out."""
    scale = norm.weight / (norm.running_var + norm.eps).sqrt()
    return (x - norm.running_mean[:, None, None]) * scale[:, None, None] + norm.bias[:, None, None]


# --- convolution in time --------------------------------------------------------------------------


def temporal_loop(layer, x, frames):
    """Channel by channel, frame by frame."""
    out = torch.zeros_like(x)
    for i in range(len(x)):
        for k in range(3):
            t = i % frames + k - 1
            if 0 <= t < frames:
                for channel in range(x.shape[1]):
                    out[i, channel] += layer.weight[channel, k] * x[i + k - 1, channel]
    return out


@pytest.mark.parametrize("frames", [1, 2, 5])
def test_temporal_convolution_is_the_loop_over_frames(frames):
    layer, x = randomised(TemporalConvolution(3)), video(2 * frames, 3, 2, 4)
    torch.testing.assert_close(layer(x, frames), temporal_loop(layer, x, frames), **CLOSE)


def test_temporal_convolution_is_that_of_torch():
    """Gradients too."""
    layer, x = randomised(TemporalConvolution(3)), video(10, 3, 2, 4).requires_grad_()
    sequences = x.unflatten(0, (2, 5)).permute(0, 3, 4, 2, 1).flatten(0, 2)
    expected = nn.functional.conv1d(sequences, layer.weight[:, None], padding=1, groups=3)
    expected = expected.unflatten(0, (2, 2, 4)).permute(0, 4, 3, 1, 2).flatten(0, 1)
    found = layer(x, 5)
    torch.testing.assert_close(found, expected, **CLOSE)
    wrt = (x, layer.weight)
    for one, other in zip(
        torch.autograd.grad((found**2).sum(), wrt), torch.autograd.grad((expected**2).sum(), wrt), strict=True
    ):
        torch.testing.assert_close(one, other, **CLOSE)


def test_starts_as_the_identity():
    x = video(6, 3, 2, 4)
    assert torch.equal(TemporalConvolution(3).double()(x, 3), x)


@pytest.mark.parametrize("channels", [4, 5])
def test_starts_as_a_shift(channels):
    """The first half of the channels comes from the next frame, the rest from the one before; zeros from outside."""
    x = video(8, channels, 2, 4)
    found = TemporalConvolution(channels, "shift").double()(x, 4).unflatten(0, (2, 4))
    clips, half = x.unflatten(0, (2, 4)), channels // 2
    assert torch.equal(found[:, :-1, :half], clips[:, 1:, :half])
    assert torch.equal(found[:, 1:, half:], clips[:, :-1, half:])
    assert not found[:, -1, :half].any()
    assert not found[:, 0, half:].any()


def test_temporal_convolution_keeps_channels_last():
    """The convolutions in space before and after it are fastest so."""
    x = video(6, 8, 4, 4).float().to(memory_format=torch.channels_last)
    layer = TemporalConvolution(8)
    assert layer(x, 3).is_contiguous(memory_format=torch.channels_last)
    block = TEABlock(8, 8, 4, first=True).to(memory_format=torch.channels_last)
    assert block(x, 3).is_contiguous(memory_format=torch.channels_last)


# --- motion excitation ----------------------------------------------------------------------------


def excitation_loop(layer, x, frames):
    """d_t = convolution(b_{t+1}) - b_t of whole maps, and what follows from it, frame by frame."""
    (squeeze, norm), (expand, last_norm) = layer.squeeze, layer.expand
    b = [normalised(norm, torch.einsum("oc,chw->ohw", squeeze.weight[..., 0, 0], frame)) for frame in x]
    out = []
    for i, frame in enumerate(x):
        d = torch.zeros_like(b[i])
        if i % frames < frames - 1:
            following = nn.functional.pad(b[i + 1], (1, 1, 1, 1))
            for channel in range(len(d)):
                for row in range(d.shape[1]):
                    for column in range(d.shape[2]):
                        window = following[channel, row : row + 3, column : column + 3]
                        d[channel, row, column] = (layer.align.weight[channel, 0] * window).sum() - b[i][
                            channel, row, column
                        ]
        a = normalised(last_norm, (expand.weight[..., 0, 0] @ d.mean((1, 2)))[:, None, None]).sigmoid() - 0.5
        out.append(frame + frame * a)
    return torch.stack(out)


@pytest.mark.parametrize("frames", [1, 3])
def test_motion_excitation_is_the_loop_over_frames(frames):
    layer, x = randomised(MotionExcitation(32)), video(2 * frames, 32, 3, 4)
    assert layer.align.weight.shape == (2, 1, 3, 3)
    torch.testing.assert_close(layer(x, frames), excitation_loop(layer, x, frames), **CLOSE)


def test_motion_excitation_sees_the_next_frame_alone():
    """A change of frame 2 reaches frames 1 and 2, in no other clip."""
    layer, x = randomised(MotionExcitation(32)), video(8, 32, 3, 4)
    changed = x.clone()
    changed[2] += 1
    differs = (layer(changed, 4) - layer(x, 4)).abs().amax((1, 2, 3)) > 0
    assert differs.tolist() == [False, True, True, False, False, False, False, False]


# --- the whole block ------------------------------------------------------------------------------


def block_loop(block, x, frames, stride, first):
    """One split after the other, as the page of the network has it."""
    enter, enter_norm, _ = block.enter
    y = normalised(enter_norm, nn.functional.conv2d(x, enter.weight)).relu()
    y = block.excitation(y, frames)
    w = y.shape[1] // 4
    out: list[torch.Tensor] = []
    for i in range(3):
        s = y[:, i * w : (i + 1) * w]
        if i > 0 and not first:
            s = s + out[-1]
        s = temporal_loop(block.temporal[i], s, frames)
        convolution, norm, _ = block.spatial[i]
        out.append(normalised(norm, nn.functional.conv2d(s, convolution.weight, stride=stride, padding=1)).relu())
    s = temporal_loop(block.shift, y[:, 3 * w :], frames)
    out.append(nn.functional.avg_pool2d(s, 3, stride, padding=1) if first else s)
    leave, leave_norm = block.leave
    y = normalised(leave_norm, nn.functional.conv2d(torch.cat(out, 1), leave.weight))
    if first:
        shortcut, norm = block.shortcut
        x = normalised(norm, nn.functional.conv2d(x, shortcut.weight, stride=stride))
    return (x + y).relu()


@pytest.mark.parametrize(("in_channels", "stride", "first"), [(5, 2, True), (5, 1, True), (8, 1, False)])
def test_block_is_the_loop_over_splits(in_channels, stride, first):
    block, x = randomised(TEABlock(in_channels, 2, 3, stride, first)), video(6, in_channels, 6, 6)
    found = block(x, 3)
    assert found.shape == (6, 8, 6 // stride, 6 // stride)
    torch.testing.assert_close(found, block_loop(block, x, 3, stride, first), **CLOSE)
