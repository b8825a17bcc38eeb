"""ZCA whitening of data sets."""

from typing import Self

import torch
from torch import Tensor, nn

from .._api import Roots, roots
from .._inputs import require_tensor
from .._registry import validate
from .._symbolic import one_node
from .._tracing import autocast_disabled, compiling, exporting
from ..gradients import Gradient
from ..methods import Method
from ._batch_statistics import BatchStatistics, batch_statistics
from ._printing import constructor_arguments
from ._validation import require_eps, require_positive
from .covariance import add_to_diagonal


class ZCAWhitening(nn.Module):
    """Whitens data (N, num_features) with statistics learnt from data: (x - mean) (covariance + eps I)^(-1/2).

    ``fit`` learns from one tensor, ``partial_fit`` from batches of any sizes one after another; the result is that of
    all rows at once, to rounding, also when the mean is large. ``transform``, which is what calling the module does,
    whitens; ``inverse_transform`` undoes it. Without data it is the identity. The first call after ``partial_fit``
    computes the roots, of at least two rows in total; a graph exported before that call contains them.

    State is in the buffers ``count``, ``mean``, ``covariance``, ``whitening`` and ``coloring``. Results have the dtype
    of floating-point data; integers give the dtype of the statistics.

    A direction of variance v is divided by sqrt(v + eps) and has variance v/(v + eps) afterwards. With ``eps=0`` and a
    covariance of full rank this is scikit-learn's ``PCA(whiten=True)`` rotated back to the axes of the data; with eps
    it is smaller by a factor sqrt(v/(v + eps)) in each direction.

    Args:
        num_features: number of columns.
        eps: added to the eigenvalues of the covariance, which is divided by N - 1.
        method: how the roots are computed, see :func:`matroot.roots`.
        gradient: how their derivatives are computed, see :func:`matroot.roots`.
        device: of the statistics.
        dtype: of the statistics, float32 at least; float64 for streams whose mean is very large.

    Raises:
        TypeError: for complex data, and data that is no tensor.
        ValueError: if ``num_features`` is below 1 or ``eps`` negative or not finite, for an unknown method or gradient,
            and for a method without inverse root; for data of another shape, naming both; when fitting NaN, Inf or too
            few rows, which changes nothing; when used after a single row.

    Example:
        >>> X = torch.randn(500, 4) @ torch.randn(4, 4)
        >>> Y = matroot.nn.ZCAWhitening(4, eps=0).fit_transform(X)
        >>> torch.allclose(torch.cov(Y.T), torch.eye(4), atol=1e-2)
        True
    """

    count: Tensor
    mean: Tensor
    covariance: Tensor
    whitening: Tensor
    coloring: Tensor

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        method: str | Method = "auto",
        gradient: str | Gradient | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_positive(num_features=num_features)
        require_eps(eps)
        validate(method, gradient, "both")
        self.num_features = num_features
        self.eps = eps
        self.method = method
        self.gradient = gradient
        wide = torch.promote_types(dtype or torch.get_default_dtype(), torch.float32)
        self.register_buffer("count", torch.empty((), device=device, dtype=torch.long))
        self.register_buffer("mean", torch.empty(num_features, device=device, dtype=wide))
        for name in ("covariance", "whitening", "coloring"):
            self.register_buffer(name, torch.empty(num_features, num_features, device=device, dtype=wide))
        self.reset()

    def reset_parameters(self) -> None:
        """:meth:`reset`, by the name under which PyTorch initialises modules made on the meta device."""
        self.reset()

    def reset(self) -> None:
        """Forget all data."""
        self.count.zero_()
        self.mean.zero_()
        for matrix in (self.covariance, self.whitening, self.coloring):
            matrix.zero_().diagonal().fill_(1)
        self._stale = False

    def fit(self, X: Tensor) -> Self:
        """Learn from these rows alone. Reads values on the host, to refuse NaN and Inf.

        Args:
            X: (N, num_features), N at least 2.

        Returns:
            The module itself.

        Raises:
            ValueError: for another shape, fewer than 2 rows, NaN or Inf; nothing changes then.
        """
        statistics = self._statistics(X, at_least=2)
        self.reset()
        self._merge(statistics)
        self._current_roots()
        return self

    def partial_fit(self, X: Tensor) -> Self:
        """Learn from these rows and all those before. Reads values on the host, as ``fit``.

        Args:
            X: (N, num_features), N at least 1.

        Returns:
            The module itself.

        Raises:
            ValueError: for another shape, no rows, NaN or Inf; nothing changes then.
        """
        self._merge(self._statistics(X, at_least=1))
        return self

    def fit_transform(self, X: Tensor) -> Tensor:
        """``fit``, then the same data whitened; gradients flow through its mean and covariance too.

        Args:
            X: (N, num_features), N at least 2.

        Returns:
            The whitened data, (N, num_features).

        Raises:
            ValueError: for another shape, fewer than 2 rows, NaN or Inf; nothing changes then.
        """
        statistics = self._statistics(X, at_least=2)
        self.reset()
        self._merge(statistics)
        with autocast_disabled(X):
            rows = len(X)
            found = self._roots(statistics.covariance[0] * (rows / (rows - 1)))
            self._store(found)
            return self._result(statistics.centred.mT @ found.invsqrt, X)

    def transform(self, X: Tensor) -> Tensor:
        """Data whitened by the statistics learnt so far.

        Args:
            X: (N, num_features).

        Returns:
            The whitened data, (N, num_features).

        Raises:
            ValueError: for another shape.
        """
        self._require(X)
        with autocast_disabled(X):
            dtype = self._compute_dtype(X)
            return self._result((X - self.mean.to(dtype)) @ self._current_roots().invsqrt.to(dtype), X)

    def inverse_transform(self, Y: Tensor) -> Tensor:
        """The data that ``transform`` whitens to this.

        Args:
            Y: (N, num_features), whitened data.

        Returns:
            The data, (N, num_features).

        Raises:
            ValueError: for another shape.
        """
        self._require(Y)
        with autocast_disabled(Y):
            dtype = self._compute_dtype(Y)
            return self._result(Y.to(dtype) @ self._current_roots().sqrt.to(dtype) + self.mean.to(dtype), Y)

    @one_node
    def forward(self, X: Tensor) -> Tensor:
        return self.transform(X)

    def extra_repr(self) -> str:
        return constructor_arguments(self, device=None, dtype=None)

    def _require(self, X: Tensor) -> None:
        require_tensor(X, "data")
        if X.is_complex():
            raise TypeError(f"expected real data, got {X.dtype}")
        if X.ndim != 2 or X.shape[1] != self.num_features:
            raise ValueError(f"expected data of shape (N, {self.num_features}), got {tuple(X.shape)}")

    def _compute_dtype(self, X: Tensor) -> torch.dtype:
        return torch.promote_types(torch.promote_types(X.dtype, self.mean.dtype), torch.float32)

    def _result(self, Y: Tensor, X: Tensor) -> Tensor:
        return Y.to(X.dtype) if X.is_floating_point() else Y

    def _statistics(self, X: Tensor, at_least: int) -> BatchStatistics:
        self._require(X)
        if len(X) < at_least:
            raise ValueError(f"expected at least {at_least} row{'s' * (at_least > 1)}, got {len(X)}")
        with autocast_disabled(X):
            statistics = batch_statistics(X.to(self._compute_dtype(X)).mT)
        if not (torch.isfinite(statistics.mean).all() and torch.isfinite(statistics.covariance).all()):
            raise ValueError("the data holds NaN or Inf, or its covariance overflows")
        return statistics

    @torch.no_grad()
    def _merge(self, new: BatchStatistics) -> None:
        """Chan's update: statistics of two sets of rows together from those of each."""
        dtype, rows = new.mean.dtype, new.centred.shape[1]
        before = self.count.to(dtype)
        shift = new.mean - self.mean.to(dtype)
        share = rows / (before + rows)
        # The scatters about the two means, and that of the means.
        scatter = (before - 1).clamp_min(0) * self.covariance.to(dtype) + rows * new.covariance[0]
        scatter = scatter + before * share * torch.outer(shift, shift)
        self.covariance.copy_(scatter / (before + rows - 1).clamp_min(1))
        self.mean.add_(share * shift)
        self.count.add_(rows)
        self._stale = True

    def _roots(self, covariance: Tensor) -> Roots:
        return roots(add_to_diagonal(covariance, self.eps), self.method, gradient=self.gradient)

    def _current_roots(self) -> Roots:
        """The roots of the covariance; those that ``partial_fit`` deferred are taken and stored now."""
        if not self._stale:
            return Roots(self.coloring, self.whitening)
        if not compiling() and self.count == 1:
            raise ValueError("the covariance of a single row is not known: partial_fit at least 2 rows before use")
        found = self._roots(self.covariance.to(torch.promote_types(self.covariance.dtype, torch.float32)))
        if not exporting():  # a graph has no values to store
            self._store(found)
        return found

    @torch.no_grad()
    def _store(self, found: Roots) -> None:
        self.coloring.copy_(found.sqrt)
        self.whitening.copy_(found.invsqrt)
        self._stale = False

    def _load_from_state_dict(self, *args) -> None:
        super()._load_from_state_dict(*args)
        self._stale = self._stale or bool(self.count == 1)  # a stream that was saved at its first row

    def _save_to_state_dict(self, *args) -> None:
        if self._stale and self.count > 1:
            self._current_roots()
        super()._save_to_state_dict(*args)
