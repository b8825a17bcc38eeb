"""What a file of weights says of where it comes from."""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from .recipe import Recipe


@dataclass(frozen=True)
class Origin:
    """Where weights come from."""

    training_data: str
    licence: str
    command: str
    recipe: Recipe

    def after(self, steps: int) -> dict[str, str]:
        """What :func:`matroot.style.save` writes of weights after so many steps: this, the steps and the date."""
        return {
            "training_data": self.training_data,
            "licence": self.licence,
            "command": self.command,
            "recipe": json.dumps(asdict(self.recipe)),
            "steps": str(steps),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
        }
