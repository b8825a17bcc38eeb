"""ZCA whitening of data sets."""

import copy
import functools
import io
import pickle

import kornia
import numpy as np
import pytest
import sklearn.decomposition
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import matroot
from matroot.nn import ZCAWhitening

from .correlated import correlated

# Two orders of the same float64 arithmetic, on covariances of condition 100.
close = functools.partial(torch.testing.assert_close, rtol=1e-9, atol=1e-9)
X = correlated(80, 7, condition=100, mean=5.0)
STATE = ("count", "mean", "covariance", "whitening", "coloring")


def zca(eps=0.0, dtype=torch.float64, **options):
    return ZCAWhitening(7, eps=eps, dtype=dtype, **options)


# --- what it computes ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("condition", [1.0, 1e3, 1e6])
def test_output_is_white(condition, dtype):
    """Rounding a covariance moves it by eps * lambda_max: by condition * eps of its smallest eigenvalue."""
    data = correlated(300, 7, condition=condition, mean=1.0, dtype=dtype)
    Y = zca(dtype=dtype).fit(data)(data)
    assert (torch.cov(Y.double().T) - torch.eye(7)).abs().max() < (condition + 20) * torch.finfo(dtype).eps
    assert Y.dtype == dtype


@pytest.mark.parametrize("eps", [0.0, 0.1])
def test_scikit_learn_rotated_back(eps):
    """PCA divides a direction of variance v by sqrt(v), this by sqrt(v + eps)."""
    pca = sklearn.decomposition.PCA(whiten=True).fit(X.numpy())
    shrunk = pca.transform(X.numpy()) * np.sqrt(pca.explained_variance_ / (pca.explained_variance_ + eps))
    close(zca(eps).fit(X)(X), torch.from_numpy(shrunk @ pca.components_))


@pytest.mark.parametrize("eps", [1e-6, 1e-2])
def test_kornia(eps):
    theirs = kornia.enhance.ZCAWhitening(dim=0, eps=eps, compute_inv=True).fit(X)
    ours = zca(eps).fit(X)
    close(ours.transform(X), theirs(X))
    close(ours.inverse_transform(X), theirs.inverse_transform(X))


@pytest.mark.parametrize("eps", [0.0, 0.3])
def test_inverse_transform(eps):
    layer = zca(eps).fit(X)
    new = correlated(20, 7, seed=1)
    close(layer.inverse_transform(layer.transform(new)), new)
    close(layer.transform(layer.inverse_transform(new)), new)


def test_eps_shrinks_small_directions():
    variances = torch.linalg.eigvalsh(torch.cov(X.T))
    after = torch.linalg.eigvalsh(torch.cov(zca(0.1).fit(X)(X).T))
    close(after, variances / (variances + 0.1))


def test_method_is_used():
    found = zca(method="pade").fit(X).whitening
    close(found, matroot.invsqrtm(torch.cov(X.T), "pade"))
    assert (found - zca().fit(X).whitening).abs().max() > 0.1


def test_gradients_flow_through_the_data():
    layer = zca().fit(X)
    data = X.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(layer(data).sum(), data)
    close(gradient, layer.whitening.sum(1).expand(80, 7))


def test_fit_transform_is_differentiable_in_the_statistics():
    layer = ZCAWhitening(4, dtype=torch.float64)
    data = correlated(9, 4).requires_grad_()
    close(layer.fit_transform(data), ZCAWhitening(4, dtype=torch.float64).fit(data)(data))
    assert torch.autograd.gradcheck(layer.fit_transform, (data,))
    assert not any(buffer.requires_grad for buffer in layer.buffers())
    close(layer(data), layer.fit_transform(data))


# --- streams -------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(sizes=st.lists(st.integers(1, 40), min_size=2, max_size=8), seed=st.integers(0, 99))
def test_batches_of_any_sizes_are_as_good_as_all_at_once(sizes, seed):
    generator = torch.Generator().manual_seed(seed)
    data = torch.randn(sum(sizes), 7, generator=generator, dtype=torch.float64) * 3 + torch.arange(7)
    streamed, whole = zca(1e-3), zca(1e-3).fit(data)
    for batch in data.split(sizes):
        assert streamed.partial_fit(batch) is streamed
    close(streamed(data), whole(data), rtol=1e-6, atol=1e-6)  # eps = 1e-3 is amplified by its inverse
    assert streamed.count == len(data)
    close(streamed.mean, data.mean(0))
    close(streamed.covariance, torch.cov(data.T))


def test_a_stream_far_from_the_origin():
    """In float32, where numbers of size 10^4 are 10^-3 apart; E[x^2] - E[x]^2 would be wrong by 10."""
    data = correlated(10_000, 7, mean=1e4, dtype=torch.float32)
    layer = zca(dtype=torch.float32)
    for batch in data.split(97):
        layer.partial_fit(batch)
    exact = data.double()
    assert (layer.mean - exact.mean(0)).abs().max() < 1e-2  # ten units in the last place
    assert (layer.covariance - torch.cov(exact.T)).abs().max() < 1e-4  # the square of that


def test_fit_forgets_what_was_before():
    layer = zca().fit(correlated(30, 7, seed=4))
    layer.fit(X)
    for name in STATE:
        close(getattr(layer, name), getattr(zca().fit(X), name))


def test_roots_are_taken_once_and_when_needed(monkeypatch):
    calls = []
    original = ZCAWhitening._roots
    monkeypatch.setattr(ZCAWhitening, "_roots", lambda *args: (calls.append(1), original(*args))[1])
    layer = zca()
    for batch in X.split(10):
        layer.partial_fit(batch)
    assert not calls
    layer(X)
    layer.inverse_transform(X)
    layer.state_dict()
    assert len(calls) == 1
    layer.partial_fit(X).state_dict()
    assert len(calls) == 2


# --- little data, bad data -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [X[:2], X[:3], torch.zeros(5, 7), torch.full((5, 7), 3.3), X * torch.tensor([0, 1, 1, 0, 1, 1, 1])],
    ids=["two-rows", "few-rows", "zero", "constant", "dead-columns"],
)
@pytest.mark.parametrize("eps", [0.0, 1e-5])
def test_degenerate_data_is_finite(data, eps):
    layer = zca(eps).fit(data)
    assert all(torch.isfinite(buffer).all() for buffer in layer.buffers())
    assert torch.isfinite(layer(data)).all()


def test_before_any_data_it_is_the_identity():
    assert torch.equal(zca()(X), X)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e300])
@pytest.mark.parametrize("learn", ["fit", "partial_fit", "fit_transform"])
def test_bad_data_is_refused_and_changes_nothing(bad, learn):
    layer = zca().fit(X)
    before = copy.deepcopy(layer.state_dict())
    data = X.clone()
    data[3, 2] = bad
    with pytest.raises(ValueError, match="NaN or Inf, or its covariance overflows"):
        getattr(layer, learn)(data)
    for name in STATE:
        assert torch.equal(layer.state_dict()[name], before[name])


@pytest.mark.parametrize("use", ["fit", "partial_fit", "fit_transform", "transform", "inverse_transform", "forward"])
@pytest.mark.parametrize("shape", [(5, 6), (7,), (2, 5, 7)])
def test_wrong_shape(use, shape):
    with pytest.raises(ValueError, match=r"expected data of shape \(N, 7\), got \(" + ", ".join(map(str, shape))):
        getattr(zca(), use)(torch.ones(shape))


@pytest.mark.parametrize("use", ["fit", "partial_fit", "fit_transform", "transform", "inverse_transform", "forward"])
def test_complex_data_is_refused(use):
    with pytest.raises(TypeError, match=r"expected real data, got torch\.complex128"):
        getattr(zca(), use)(X.to(torch.complex128))


@pytest.mark.parametrize("use", ["fit", "partial_fit", "fit_transform", "transform", "inverse_transform", "forward"])
def test_arrays_are_refused(use):
    with pytest.raises(TypeError, match=r"data must be a torch\.Tensor, got ndarray"):
        getattr(zca(), use)(X.numpy())


@pytest.mark.parametrize(
    ("learn", "rows", "least"),
    [("fit", 0, "2 rows"), ("fit", 1, "2 rows"), ("fit_transform", 1, "2 rows"), ("partial_fit", 0, "1 row")],
)
def test_too_few_rows(learn, rows, least):
    layer = zca().fit(X)
    with pytest.raises(ValueError, match=f"at least {least}, got {rows}"):
        getattr(layer, learn)(X[:rows])
    assert layer(X[:0]).shape == (0, 7)
    assert layer.count == len(X)


def test_a_stream_is_used_from_the_second_row_on():
    layer = zca(1e-3).partial_fit(X[:1])
    for use in (layer, layer.inverse_transform):
        with pytest.raises(ValueError, match="the covariance of a single row is not known"):
            use(X)
    other = zca(1e-3)
    other.load_state_dict(layer.state_dict())  # a stream may be saved at any row
    with pytest.raises(ValueError, match="the covariance of a single row is not known"):
        other(X)
    for again in (layer, other):
        for row in X[1:].split(1):
            again.partial_fit(row)
        close(again(X), zca(1e-3).fit(X)(X))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"eps": -1.0}, "eps must be a finite"),
        ({"method": "svd"}, "unknown method"),
        ({"gradient": "x"}, "unknown grad"),
        ({"method": "power-iteration"}, "has no inverse root"),
        ({"method": "eigen", "gradient": matroot.Lyapunov}, "got the class"),
        ({"method": "pade", "gradient": "eigen-clip"}, "works on an eigendecomposition"),
    ],
)
def test_wrong_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        zca(**options)


def test_no_features():
    with pytest.raises(ValueError, match="num_features must be at least 1, got 0"):
        ZCAWhitening(0)


# --- a module like others ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_data(dtype):
    """Computed in float32, where a whitening of condition 100 has errors of 100 ||W|| eps = 1e-4, and rounded once."""
    data = X.to(dtype)
    exact = zca(1e-3).fit(data.double())
    for autocast in (False, True):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            layer = zca(1e-3, dtype=torch.float32).fit(data)
            Y = layer(data)
        assert Y.dtype == dtype
        torch.testing.assert_close(layer.whitening.double(), exact.whitening, rtol=0, atol=1e-4)
        torch.testing.assert_close(Y.double(), exact(data.double()), rtol=0.5 * torch.finfo(dtype).eps, atol=1e-3)


def test_integer_data():
    images = torch.randint(0, 256, (50, 7), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    found = zca(dtype=torch.float32).fit(images)(images)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), zca().fit(images.double())(images.double()), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("fitted", ["fit", "partial_fit"])
def test_state_dict_round_trip(fitted):
    layer = getattr(zca(), fitted)(X)
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    single = ZCAWhitening(7, device="meta").to_empty(device="cpu")
    single.load_state_dict(torch.load(file))
    assert single.whitening.dtype == torch.float32
    torch.testing.assert_close(single(X.float()), layer(X).float(), rtol=1e-4, atol=1e-4)  # ||W|| * mean * eps
    # The stream continues from the loaded state.
    assert single.count == 80
    double = zca()
    double.load_state_dict(layer.state_dict())
    more = correlated(30, 7, seed=5)
    close(double.partial_fit(more)(more), layer.partial_fit(more)(more))


@pytest.mark.parametrize("again", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_copies(again):
    layer = zca().partial_fit(X)
    other = again(layer)
    close(other(X), layer(X))
    layer.partial_fit(2 * X)
    assert not torch.allclose(other(X), layer(X))


def test_prints_its_constructor_call():
    layer = zca(1e-3, method=matroot.Pade(degree=3), gradient="lyapunov")
    again = eval(repr(layer), {**{name: getattr(matroot, name) for name in dir(matroot)}, **vars(matroot.nn)})
    names = ("num_features", "eps", "method", "gradient")
    assert [getattr(again, n) for n in names] == [getattr(layer, n) for n in names]


@pytest.mark.parametrize("fitted", ["fit", "partial_fit"])
def test_compile(fitted):
    torch.compiler.reset()
    layer = getattr(zca(), fitted)(X)
    close(torch.compile(layer, fullgraph=True, backend="aot_eager")(X), zca().fit(X)(X))
    assert not layer._stale
