"""The sentences of the report, against cases whose numbers are known."""

from matroot.bench.report.findings import suite_findings

from .example_results import case, document, load


def results(folder, cases):
    return load(folder, document(suites=()) | {"cases": cases})


def test_padé_against_newton_schulz_is_computed(tmp_path):
    cases = []
    for iterations, time, error in ((3, 1.0, 1e-1), (5, 2.0, 1e-2)):
        parameters = {"iterations": iterations, "inverse": False}
        cases.append(case("forward", "newton-schulz", parameters, time, {"mae": error}))
    cases.append(case("forward", "pade", {"degree": 5, "inverse": False}, 1.5, {"mae": 1e-3}))
    first, fastest = suite_findings("forward", results(tmp_path, cases))
    assert "only for the iteration counts 5 (1 of 2)" in first.text
    assert "Newton-Schulz, 3 iterations, with 1 ms" in fastest.text


def test_padé_on_the_scalar_is_computed(tmp_path):
    cases = []
    for contestant, error in (("pade", [1e-3, 1e-3, 1e-2]), ("taylor", [1e-2, 1e-4, 1e-1])):
        cases.append(case("scalar", contestant, {"degree": 5}, values={"z": [0.1, 0.5, 0.9], "error": error}))
    _, closest = suite_findings("scalar", results(tmp_path, cases))
    assert closest.text == "A Padé approximant is the closest at 2 of 3 values of z."
    for contestant, order, error in (
        ("taylor", {"degree": 11}, [1, 1, 0.2]),
        ("newton-schulz", {"iterations": 5}, [1, 1e-4, 1]),
    ):
        cases.append(case("scalar", contestant, order, values={"z": [0.1, 0.5, 0.9], "error": error}))
    *_, settings = suite_findings("scalar", results(tmp_path, cases))
    assert "Padé [5,5] is the closest at 2 of 3; the errors at z = 0.9 are 0.01 (Padé, degree 5), 0.2" in settings.text


def test_where_the_default_is_slower(tmp_path):
    cases = []
    for n, ours, theirs in ((8, 2.0, 1.0), (64, 1.0, 4.0)):
        for contestant, time in (("auto", ours), ("eigh", theirs)):
            cases.append(case("speed", contestant, {"batch": 2, "n": n}, time))
    (finding,) = suite_findings("speed", results(tmp_path, cases))
    assert "between 0.5 (2 matrices 8 x 8) and 4 (2 matrices 64 x 64)" in finding.text
    assert finding.text.endswith("slower for 2 matrices 8 x 8.")


def test_shapes_are_named_with_their_outputs(tmp_path):
    cases = []
    for output, ours in (("root", 1.0), ("inverse", 3.0)):
        for contestant, time in (("mpa-lya", ours), ("ns", 2.0)):
            cases.append(case("applications", contestant, {"shape": "64 x 48 x 48", "output": output}, time))
    (finding,) = suite_findings("applications", results(tmp_path, cases))
    assert "faster than Newton-Schulz only for shape 64 x 48 x 48 (root) (1 of 2)" in finding.text


def test_residuals_next_to_those_of_the_paper(tmp_path):
    cases = []
    values = {"steps": [5, 6, 7, 8, 9], "residual": [0.5, 0.1, 2e-2, 3e-4, 1e-6]}
    cases.append(case("residuals", "lyapunov", {}, values=values))
    (finding,) = suite_findings("residuals", results(tmp_path, cases))
    assert "after 5, 6, 7 and 8 iterations: 0.5, 0.1, 0.02 and 3.0·10⁻⁴; in the paper 0.354, 0.041" in finding.text
    assert finding.text.endswith("It is below 10⁻⁵ from 9 iterations on; in the paper from 8.")


def test_accuracy_names_the_exceptions_and_who_has_no_number(tmp_path):
    cases = []
    for spectrum, condition, ours, theirs in (
        ("log", 1e3, 1e-3, 1e-2),
        ("log", 1e6, 0.3, 0.1),
        ("low-rank", 1e3, 0.2, None),
    ):
        for contestant, error in (("mpa-lya", ours), ("ns", theirs)):
            parameters = {"spectrum": spectrum, "condition": condition}
            cases.append(case("accuracy", contestant, parameters, errors={"root": error}))
    regular, singular, closer = (finding.text for finding in suite_findings("accuracy", results(tmp_path, cases)))
    assert regular.endswith("root on matrices of condition up to 1.0·10⁶: Newton-Schulz 0.1 and MPA-Lya 0.3.")
    assert singular.endswith("root on singular matrices: MPA-Lya 0.2; not always a number: Newton-Schulz.")
    assert closer.endswith("than Newton-Schulz for 1 of 2 kinds; not for log of condition 1.0·10⁶.")


def test_solvers_that_never_give_a_number_are_named(tmp_path):
    cases = [case("accuracy", "ns", {"spectrum": "log", "condition": 1e3}, errors={"root": None})]
    (finding,) = suite_findings("accuracy", results(tmp_path, cases))
    assert finding.text.endswith("of condition up to 1000: not always a number: Newton-Schulz.")


def test_what_is_no_number_is_not_as_exact_as_the_default(tmp_path):
    cases = [
        case("batch", name, {"batch": 4}, time, {"root": error})
        for name, time, error in (("auto", 2.0, 1e-7), ("mtp-lya", 1.0, None))
    ]
    fastest, *_ = suite_findings("batch", results(tmp_path, cases))
    assert fastest.text.endswith("the default is the fastest everywhere (1 of 1).")


def test_the_papers_method_against_a_decomposition(tmp_path):
    cases = []
    for n, ours, theirs in ((16, 3.0, 1.0), (64, 2.0, 4.0)):
        for contestant, time in (("paper", ours), ("eigh", theirs)):
            cases.append(case("speed", contestant, {"batch": 2, "n": n}, time))
    (finding,) = suite_findings("speed", results(tmp_path, cases))
    assert finding.text.endswith("faster than torch.linalg.eigh only for the shapes 2 matrices 64 x 64 (1 of 2).")


def test_the_cost_of_the_inverse_root(tmp_path):
    cases = []
    for inverse, time in ((False, 2.0), (True, 3.0)):
        cases.append(case("backward", "lyapunov", {"iterations": 8, "inverse": inverse}, time))
    (finding,) = suite_findings("backward", results(tmp_path, cases))
    assert "the inverse root takes 1.5 times as long as the root" in finding.text


def test_solvers_without_a_gradient_are_not_compared_with_the_default(tmp_path):
    cases = []
    for contestant, time in (("auto", 2.0), ("eigh", 3.0), ("scipy", 1.0)):
        cases.append(case("dimension", contestant, {"n": 8}, time, {"root": 1e-7}))
    (finding,) = suite_findings("dimension", results(tmp_path, cases))
    assert "the default is the fastest everywhere" in finding.text


def test_degrees_of_padé(tmp_path):
    errors = {3: 0.3, 5: 0.02, 6: 0.004}
    cases = [case("pade", "pade", {"degree": k, "inverse": False}, errors={"root": e}) for k, e in errors.items()]
    (finding,) = suite_findings("pade", results(tmp_path, cases))
    assert finding.text == (
        "Root: the error is 0.3 with [3,3], 0.02 with [5,5] and 4.0·10⁻³ with [6,6], 5 times less than with [5,5]."
    )


def test_time_and_memory_of_backward_schemes(tmp_path):
    measured = {"lyapunov": (2.0, 1.5), "unrolled": (2.05, 12.5), "implicit": (1.0, 4.0)}
    cases = [case("schemes", name, {}, time, values={"megabytes": mb}) for name, (time, mb) in measured.items()]
    assert [finding.text for finding in suite_findings("schemes", results(tmp_path, cases))] == [
        "Lyapunov takes 2 ms, within 5 percent of unrolled (2.05 ms); memory 1.5 MB against 12.5 MB.",
        "Lyapunov takes 2 ms, 2 times as long as implicit (1 ms); memory 1.5 MB against 4 MB.",
    ]
