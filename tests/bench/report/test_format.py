"""Result files that are refused, and what the error says."""

import copy
import json
import re

import pytest

from matroot.bench.report import ResultError, read

from .example_results import document, load


def edited(path, value):
    """A good document with one field replaced, or removed for ``...``."""
    found = copy.deepcopy(document(suites=("scalar", "speed")))
    at = found
    for key in path[:-1]:
        at = at[key]
    if value is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return found


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        (("format",), "matroot-bench 2", "format"),
        (("format",), ..., "format"),
        (("command",), 1, "command"),
        (("surroundings",), [], "surroundings"),
        (("surroundings", "torch"), ..., "surroundings.torch"),
        (("surroundings", "cores"), [], "surroundings.cores"),
        (("settings", "dtype"), None, "settings.dtype"),
        (("cases",), {}, "cases"),
        (("cases", 5), 3, "cases[5]"),
        (("cases", 5, "contestant"), ..., "cases[5].contestant"),
        (("cases", 5, "parameters"), None, "cases[5].parameters"),
        (("cases", 5, "parameters", "n"), {}, "cases[5].parameters.n"),
        (("cases", 5, "milliseconds"), 1.0, "cases[5].milliseconds"),
        (("cases", 5, "milliseconds", "median"), ..., "cases[5].milliseconds.median"),
        (("cases", 5, "milliseconds", "median"), -1.0, "cases[5].milliseconds.median"),
        (("cases", 5, "errors", "root"), -1e-9, "cases[5].errors.root"),
        (("cases", 5, "errors", "root"), "small", "cases[5].errors.root"),
        (("cases", 5, "errors", "root"), True, "cases[5].errors.root"),
        (("cases", 5, "errors", "root"), 10**400, "cases[5].errors.root"),
        (("cases", 5, "note"), 4, "cases[5].note"),
        (("cases", 0, "values", "z"), [0.0], "cases[0].values"),
        (("cases", 0, "values", "z", 3), "x", "cases[0].values.z"),
        (("cases", 0, "values", "z"), ..., "cases[0].values"),
        (("cases", 5, "case"), "auto batch=1 n=16", "cases[5].case"),
    ],
)
def test_wrong_fields_are_named(tmp_path, path, value, field):
    with pytest.raises(ResultError, match=re.escape(f"file.json: field {field} ")):
        load(tmp_path, edited(path, value))


@pytest.mark.parametrize("text", ["", "[", '{"format": NaN}', "\xff", "[" * 100000, "1e999", "[]", "null"])
def test_what_is_no_result_file(tmp_path, text):
    path = tmp_path / "file.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ResultError, match=r"file\.json: "):
        read(path)


def test_a_file_cut_anywhere_is_refused(tmp_path):
    whole = json.dumps(document(suites=("schemes",)))
    path = tmp_path / "file.json"
    for end in range(0, len(whole), 37):
        path.write_text(whole[:end])
        with pytest.raises(ResultError):
            read(path)
