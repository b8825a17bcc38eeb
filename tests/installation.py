"""What this installation can do."""

import pytest
import torch

import matroot

HAS_COMPILED_CODE = matroot.choose(torch.eye(2)).backend == "compiled"
needs_compiled_code = pytest.mark.skipif(not HAS_COMPILED_CODE, reason="this installation has no compiled code")
