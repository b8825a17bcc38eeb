"""What operations make."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Largest(TorchDispatchMode):
    """Records the operations, and the number of entries of the largest tensor made."""

    def __init__(self):
        super().__init__()
        self.size, self.names = 0, set()

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        self.names.add(operation.overloadpacket.__name__)
        for tensor in result if isinstance(result, tuple | list) else [result]:
            self.size = max(self.size, tensor.numel() if isinstance(tensor, torch.Tensor) else 0)
        return result
