"""The benchmark of the layers: its steps run, its table prints."""

import pytest

from matroot.bench import layer_cost


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
    assert lines[2].split()[1:] == ["2.000", "3.000", "1.000", "1.000", "1.000", "1.000"]
    assert lines[3].split()[1:] == ["2.200", "3.600", "1.100", "1.200"]
    assert lines[4] == "ours, in a graph: out of memory"


def test_pooling_step():
    layer_cost.covariance_pooling(2, 2, "cpu")()


def test_networks():
    pytest.importorskip("torchvision", reason="only the training extra has it")
    layer_cost.residual_network(2, True, "cpu")()
