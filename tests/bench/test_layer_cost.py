"""The benchmark of the layers: its steps run, times are compared, its table prints."""

import pytest

from matroot.bench import layer_cost
from matroot.bench.format import ResultError


def test_a_table(capsys):
    times = {"back_to_back": {"median": 2.0}, "single": {"median": 3.0}}
    result = {
        "case": "a step",
        "milliseconds": {"plain": times, "ours": {"back_to_back": {"median": 2.2}, "single": {"median": 3.6}}},
        "graph_milliseconds": {"plain": {"median": 1.0}},
        "failures": {"ours, in a graph": "out of memory"},
    }
    layer_cost.show([result])
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].split()[1:] == ["2.00", "3.00", "1.00", "1.00", "1.00", "1.00"]
    assert lines[4].split()[1:] == ["2.20", "3.60", "-", "1.10", "1.20", "-"]
    assert lines[5] == "ours, in a graph: out of memory"


def test_steps_that_fail_are_named():
    def broken():
        raise RuntimeError("out of memory")

    result = layer_cost.compare("a step", {"plain": list, "ours": broken}, "cpu", 1)
    assert result["failures"] == {"ours": "RuntimeError: out of memory"}
    assert set(result["milliseconds"]["plain"]) == {"single", "back_to_back"}


def test_pooling_step():
    layer_cost.covariance_pooling(2, 2, "cpu")()


def test_networks():
    pytest.importorskip("matroot.models", reason="needs torchvision, which only the training extra has")
    layer_cost.residual_network(2, True, "cpu")()


def test_a_file_that_cannot_be_written_is_named_before_anything_is_measured(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(layer_cost, "measure", None)
    with pytest.raises(ResultError, match="cannot write"):
        layer_cost.main(["--out", str(tmp_path / "file")])
