import os
import subprocess
import sys

PROGRAM = """
import os, sys, types
from bench.tensorflow_startup import start_tensorflow
{before}
class Config:
    def list_physical_devices(self):
        {during}
fake = types.ModuleType("tensorflow")
fake.config = Config()
sys.modules["tensorflow"] = fake
{call}
sys.stderr.write("after\\n")
"""
NOISE = (
    r'os.write(2, b"I0000 oneDNN custom operations are on. You may see\nE0000 failed call to cuInit: no\n")'
)


def started(during, call="start_tensorflow()", before="", environment=None):
    program = PROGRAM.format(during=during, call=call, before=before)
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_usual_start_up_notes_do_not_reach_the_user():
    assert started(NOISE).stderr == "after\n"


def test_whatever_else_is_written_meanwhile_is_shown():
    result = started(NOISE + r'; os.write(2, b"CUDA_ERROR_NO_DEVICE: the driver is broken\n")')
    assert result.stderr == "CUDA_ERROR_NO_DEVICE: the driver is broken\nafter\n"


def test_what_is_written_before_comes_before():
    assert started(NOISE, before='sys.stderr.write("before\\n")').stderr == "before\nafter\n"


def test_stderr_works_again_after_an_error_and_what_was_written_is_not_lost():
    call = """
try:
    start_tensorflow()
except ValueError as error:
    sys.stderr.write(f"caught {error}\\n")
"""
    result = started(r'os.write(2, b"a hint\n"); raise ValueError("broken")', call=call)
    assert result.stderr == "a hint\ncaught broken\nafter\n"


def test_text_that_is_not_utf8_does_no_harm():
    result = started(r'os.write(2, b"\xff\xfe\n")')
    assert result.returncode == 0
    assert result.stderr.endswith("after\n")


def test_a_log_level_that_the_user_set_is_kept():
    show = 'start_tensorflow(); print(os.environ["TF_CPP_MIN_LOG_LEVEL"])'
    assert started("pass", call=show, environment={"TF_CPP_MIN_LOG_LEVEL": "0"}).stdout == "0\n"
