"""The script that times a newcomer's path."""

import runpy
from pathlib import Path

import pytest

from matroot._terminal import CommandError

ROOT = Path(__file__).parent.parent
SCRIPT = runpy.run_path(str(ROOT / "tools/first_steps.py"))


def test_its_commands_are_those_of_the_readme():
    SCRIPT["require_in_readme"](SCRIPT["STEPS"], (ROOT / "README.md").read_text(encoding="utf-8"))


def test_other_commands_are_refused():
    with pytest.raises(CommandError, match="no command make coffee"):
        SCRIPT["require_in_readme"](["make coffee"], "make demo")
