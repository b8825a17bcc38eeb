"""Programs with ``torch.compile`` find what was compiled ahead."""

import os

import pytest

from matroot.backends.triton.cache_folder import keep_cache_folder


def test_the_folder_stays_what_it_is(monkeypatch):
    knobs = pytest.importorskip("triton").knobs
    monkeypatch.setenv("TRITON_CACHE_DIR", "to be restored")
    monkeypatch.delenv("TRITON_CACHE_DIR")
    folder = knobs.cache.dir
    keep_cache_folder()
    # What torch.compile does with its first kernel.
    if os.getenv("TRITON_CACHE_DIR") is None:
        os.environ["TRITON_CACHE_DIR"] = "elsewhere"
    assert knobs.cache.dir == folder


def test_one_that_is_named_is_kept(monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", "elsewhere")
    keep_cache_folder()
    assert os.environ["TRITON_CACHE_DIR"] == "elsewhere"
