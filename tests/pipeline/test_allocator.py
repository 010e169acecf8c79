"""The advice to the C library, given in processes of their own: it is for ever."""

import platform
import subprocess
import sys

import pytest

from pipeline import allocator

# Frees blocks of 8 MiB as a pipeline does, and counts the pages that the kernel hands out anew.
PROGRAM = """
import ctypes, resource
from pipeline.allocator import keep_freed_memory
if {keep}:
    assert keep_freed_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
# Larger than the 32 MiB up to which glibc learns to keep blocks by itself.
size = 64 * 1024 * 1024
def use():
    block = libc.malloc(size)
    ctypes.memset(block, 1, size)
    libc.free(block)
use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(4):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(keep):
    program = PROGRAM.format(keep=keep)
    return int(subprocess.check_output([sys.executable, "-c", program], text=True, timeout=60))


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the advice is for glibc")
def test_freed_blocks_are_used_again_without_new_pages():
    # 4 blocks are 65,536 pages of 4 KiB, or 128 of 2 MiB where the kernel gives huge ones.
    assert page_faults(keep=True) < 100 < page_faults(keep=False)


@pytest.mark.parametrize("error", [OSError, AttributeError])
def test_other_c_libraries_are_left_alone(monkeypatch, error):
    def no_such_library(name):
        raise error

    monkeypatch.setattr(allocator.ctypes, "CDLL", no_such_library)
    assert allocator.keep_freed_memory() is False


@pytest.mark.parametrize(
    "refused, calls, kept",
    [
        ({}, [(-3, 2**30), (-1, 2**31 - 1)], True),
        ({(-3, 2**30)}, [(-3, 2**30), (-3, 2**25), (-1, 2**31 - 1)], True),
        ({(-3, 2**30), (-3, 2**25)}, [(-3, 2**30), (-3, 2**25)], False),
        ({(-1, 2**31 - 1)}, [(-3, 2**30), (-1, 2**31 - 1)], False),
    ],
)
def test_older_libraries_get_the_largest_threshold_that_they_take(monkeypatch, refused, calls, kept):
    made = []

    class Library:
        def mallopt(self, option, value):
            made.append((option, value))
            return 0 if (option, value) in refused else 1

    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda name: Library())
    assert allocator.keep_freed_memory() is kept
    assert made == calls
