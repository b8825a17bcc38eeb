"""What a result file records of the machine and the code."""

import subprocess

import pytest
import torch

import matroot
from matroot import _environment as environment


def test_machine_versions_and_code():
    found = environment.environment()
    assert (found["matroot"], found["torch"]) == (matroot.__version__, torch.__version__)
    assert found["processor"]
    assert found["source"] == environment.source_digest(environment.PACKAGE)


@pytest.fixture
def package(tmp_path):
    for name in ("__init__.py", "methods/pade.py", "bench/cases.py", "bench/report/page.py", "_cli/main.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def digest(package):
    return environment.source_digest.__wrapped__(package)


@pytest.mark.parametrize("name", ["__init__.py", "methods/pade.py", "bench/cases.py", "methods/_new.so"])
def test_the_digest_changes_with_code_that_results_depend_on(package, name):
    before = digest(package)
    (package / name).write_text("changed")
    assert digest(package) != before


@pytest.mark.parametrize("name", ["bench/report/page.py", "_cli/main.py", "methods/__pycache__/pade.pyc"])
def test_the_digest_does_not_depend_on_how_results_are_shown(package, name):
    before = digest(package)
    (package / name).parent.mkdir(exist_ok=True)
    (package / name).write_text("changed")
    assert digest(package) == before


def test_the_digest_knows_where_content_ends(package):
    before = digest(package)
    (package / "methods/pade.py").rename(package / "methods/taylor.py")
    assert digest(package) != before


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    done = subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_the_commit_is_that_of_the_package_and_not_of_a_folder_around_it(package, monkeypatch):
    def commit():
        return environment._commit.__wrapped__()

    monkeypatch.setattr(environment, "PACKAGE", package)
    git(package, "init", "--quiet")
    git(package, "commit", "--quiet", "--allow-empty", "-m", "empty")
    assert commit() is None  # files that are not tracked
    git(package, "add", ".")
    git(package, "commit", "--quiet", "-m", "all")
    head = git(package, "rev-parse", "HEAD")
    assert commit() == head
    (package / "__init__.py").write_text("changed")
    assert commit() == f"{head}-dirty"


def test_without_git_and_lscpu_there_is_still_a_processor(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert environment._commit.__wrapped__() is None
    assert environment._processor.__wrapped__()
