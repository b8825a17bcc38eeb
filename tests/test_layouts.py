"""Layouts other than strided are refused by name."""

import pytest
import torch

import matroot

A = torch.eye(3)


@pytest.mark.filterwarnings("ignore:.*(CSR|nested).*:UserWarning")
@pytest.mark.parametrize(
    ("make", "layout"),
    [
        (lambda: A.to_sparse(), "sparse_coo"),
        (lambda: A.to_sparse_csr(), "sparse_csr"),
        (lambda: A.to_mkldnn(), "_mkldnn"),
        (lambda: torch.nested.nested_tensor([A, A]), "nested"),
        (lambda: torch.nested.nested_tensor([A, A], layout=torch.jagged), "nested"),
    ],
)
@pytest.mark.parametrize("function", [matroot.sqrtm, matroot.roots, matroot.choose])
def test_other_layouts(make, layout, function):
    with pytest.raises(TypeError, match=f"A has layout {layout}; accepted are strided"):
        function(make())
