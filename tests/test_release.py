"""What a release consists of: files of the archive, the workflows, and the programs that they run."""

import re
import runpy
import subprocess
import tomllib
from pathlib import Path

import pytest
import torch

import matroot

from .installation import needs_compiled_code

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
CHECK = runpy.run_path(str(ROOT / "tools/check_installation.py"))
CONSTRAIN = runpy.run_path(str(ROOT / "tools/constrain_torch.py"))
REQUIREMENT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"][0]

# --- the source archive ---------------------------------------------------------------------------


def test_the_archive_has_every_file():
    """So that what tests read is there; but for a script that only checkouts have a use for."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    sdist = pytest.importorskip("hatchling.builders.sdist")
    archived = {file.relative_path for file in sdist.SdistBuilder(str(ROOT)).recurse_included_files()}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    always = {"pyproject.toml", "README.md", "LICENSE", ".gitignore"}  # added without being asked for
    assert {file for file in tracked if (ROOT / file).exists()} - archived - always == {".ci/run"}


# --- workflows ------------------------------------------------------------------------------------


def test_there_are_workflows():
    assert {path.stem for path in WORKFLOWS} == {"test", "distributions", "release"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_use_what_is_there(path):
    """Actions of others by commit, since tags move; workflows and programs of this repository by their files."""
    text = path.read_text()
    for action in re.findall(r"uses: (\S+)", text):
        if action.startswith("./"):
            assert (ROOT / action).exists()
        else:
            assert re.search(r"@[0-9a-f]{40}$", action), action
    for program in re.findall(r"python (tools/\S+)", text):
        assert (ROOT / program).exists()


def test_nothing_is_published_by_default():
    yaml = pytest.importorskip("yaml")
    jobs = {path.stem: yaml.safe_load(path.read_text())["jobs"] for path in WORKFLOWS}
    may_publish = [
        (workflow, name)
        for workflow, found in jobs.items()
        for name, job in found.items()
        if "id-token" in job.get("permissions", {})
    ]
    assert may_publish == [("release", "publish")]
    publish = jobs["release"]["publish"]
    assert publish["if"] == "vars.PUBLISH == 'true'"
    assert publish["needs"] == "collect"
    assert jobs["release"]["collect"]["needs"] == "test"


# --- the torch to test with -----------------------------------------------------------------------


def test_the_oldest_torch_is_the_one_that_is_promised():
    theirs = ["numpy==2.4.6", "torch==2.13.0", "torchvision==0.28.0", 'triton==3.7.1; platform_system == "Linux"']
    found = CONSTRAIN["constrain"](["timm==1.0", *theirs], "oldest", "torch>=2.11")
    assert found == ["timm==1.0", "torch==2.11.*", "numpy<2.4"]
    (promised,) = re.findall(r"\| PyTorch \| from (\S+);", (ROOT / "docs/versions.md").read_text())
    assert f"torch>={promised}" == REQUIREMENT


def test_pinned_and_newest():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert CONSTRAIN["constrain"](lines, "pinned", REQUIREMENT) == lines
    (formatter,) = CONSTRAIN["constrain"](lines, "newest", REQUIREMENT)
    assert formatter.startswith("ruff==")


# --- the check of an installed wheel --------------------------------------------------------------


def test_a_checkout_is_no_wheel():
    with pytest.raises(SystemExit, match="no installed wheel"):
        CHECK["check_place"](ROOT / "src/matroot/__init__.py")
    CHECK["check_place"](ROOT / ".venv/lib/site-packages/matroot/__init__.py")


@pytest.mark.parametrize(
    ("tags", "compiled", "pure"),
    [
        (["py3-none-any"], False, True),
        (["py3-none-manylinux2014_x86_64", "py3-none-manylinux_2_17_x86_64"], True, False),
        (["cp312-cp312-linux_x86_64"], False, False),
        ([], False, False),
    ],
)
def test_tags(tags, compiled, pure):
    metadata = "Wheel-Version: 1.0\n" + "".join(f"Tag: {tag}\n" for tag in tags)
    for is_pure, good in ((False, compiled), (True, pure)):
        if good:
            CHECK["check_tag"](metadata, is_pure)
        else:
            with pytest.raises(SystemExit, match="tags"):
                CHECK["check_tag"](metadata, is_pure)


@needs_compiled_code
def test_compiled_code_is_not_taken_for_its_absence():
    CHECK["check_results"]("compiled")
    with pytest.raises(SystemExit, match="there is compiled code"):
        CHECK["check_refusal"]()


def test_wrong_results_are_found(monkeypatch):
    """A thousand roundings, in one matrix of forty."""
    CHECK["check_results"]("auto")
    right = matroot.roots

    def wrong(A, method, *, backend):
        S, R = right(A, method, backend=backend)
        if backend == "auto":
            R = torch.cat([R[:1] * (1 + 1e3 * torch.finfo(A.dtype).eps), R[1:]])
        return S, R

    monkeypatch.setattr(matroot, "roots", wrong)
    with pytest.raises(SystemExit, match=r"inverse root in torch\.float32 by auto"):
        CHECK["check_results"]("auto")
