"""What is drawn of the cases of a suite."""

from matroot.bench.report.sections import SECTIONS

from .example_results import case, document, load


def drawn(tmp_path, errors):
    """The series of errors of the root by condition number; ``errors`` are contestant, spectrum, condition, error."""
    cases = [
        case("accuracy", name, {"spectrum": spectrum, "condition": condition}, errors={"root": error})
        for name, spectrum, condition, error in errors
    ]
    figure, _ = SECTIONS["accuracy"].figures
    found = load(tmp_path, document(suites=()) | {"cases": cases})
    return {series.name: list(series.points) for series in figure.series(found.suite("accuracy"))}


def test_the_largest_error_at_each_condition(tmp_path):
    cases = [("ns", "log", 10.0, 1e-3), ("ns", "clustered", 10.0, 1e-2), ("ns", "log", 1e3, 0.1)]
    assert drawn(tmp_path, cases) == {"ns": [(10.0, 1e-2), (1e3, 0.1)]}


def test_no_error_is_the_largest_where_one_is_no_number(tmp_path):
    cases = [("ns", "log", 10.0, 1e-3), ("ns", "log", 1e3, 0.1), ("ns", "clustered", 1e3, None)]
    assert drawn(tmp_path, cases) == {"ns": [(10.0, 1e-3)]}
    assert drawn(tmp_path, cases[1:]) == {}
