"""The same name on disk for the same kernel, in whichever order a process asks for its kernels.

Triton keeps compiled code under a hash of the kernel's source, that of the functions it calls, and the constants these
use. Up to Triton 3.7 the constants of a function count only if the function was hashed before its caller: the hash of a
kernel then depends on which kernels the process called before, and code that another process compiled is not found.
"""

from typing import Any

_hashed: set[int] = set()


def hash_callees_first(function: Any) -> None:
    """Let Triton hash the functions that a kernel calls before the kernel; call it before the kernel's first launch."""
    if id(function) in _hashed or not hasattr(type(function), "cache_key"):
        return  # done, or nothing that is compiled
    for name in function.fn.__code__.co_names:
        hash_callees_first(function.fn.__globals__.get(name))
    function.cache_key  # noqa: B018 - computed once, when it is asked for
    _hashed.add(id(function))
