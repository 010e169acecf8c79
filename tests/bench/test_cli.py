import json
import os
import signal
import subprocess
import sys

import click
import pytest

from bench import cli
from echoing.errors import DataError

SUBCOMMANDS = [["run"], ["report"], ["data"], ["data", "make"], ["data", "convert"], ["data", "check"]]


def run_process(code, *arguments, cwd=None):
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=cwd,
        check=False,
    )


RUN_MAIN = "import sys; from bench.cli import main; main(sys.argv[1:])"
IS_TENSORFLOW_LOADED = """
import json, sys
from bench.cli import main
codes = []
for words in json.loads(sys.argv[1]):
    try:
        main(words)
    except SystemExit as error:
        codes.append(error.code)
heavy = sorted({"tensorflow", "matplotlib", "pandas"}.intersection(sys.modules))
sys.stderr.write("\\n" + json.dumps([codes, heavy]) + "\\n")
"""


def without_tensorflow(*commands):
    """Runs commands in one fresh process; returns exit codes, and asserts that nothing heavy was imported."""
    result = run_process(IS_TENSORFLOW_LOADED, json.dumps(commands))
    assert result.returncode == 0, result.stderr
    codes, heavy = json.loads(result.stderr.splitlines()[-1])
    assert heavy == []
    return codes


def test_help_imports_nothing_heavy():
    commands = [["--help"], ["-h"], ["--version"], *([*words, "--help"] for words in SUBCOMMANDS)]
    assert without_tensorflow(*commands) == [0] * len(commands)


def test_usage_errors_import_nothing_heavy(tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "result.json").write_text("{}")
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "validation-00000-of-00001").write_bytes(b"")
    commands = [
        ["run", "--data-dir=", "/path"],
        ["run", "--data-dir", ""],
        ["run", "--batch-sise", "4"],
        ["run", "--batch-size", "0"],
        ["run", "--batch-size", "-1"],
        ["run", "--echo-factor", "two"],
        ["run", "--insert-point", "nowhere"],
        ["run", "--accelerator", "abacus"],
        ["run", "--steps", "1", "--epochs", "1"],
        ["run", "--data-dir", str(tmp_path / "typo"), "--output", str(tmp_path / "a")],
        ["run", "--data-dir", str(tmp_path / "empty"), "--output", str(tmp_path / "b")],
        ["run", "--data-dir", str(tmp_path / "other"), "--output", str(tmp_path / "c")],
        ["run", "--output", str(folder)],
    ]
    assert without_tensorflow(*commands) == [2] * len(commands)


def test_the_help_lists_the_subcommands_in_sections_with_an_example_each(cli_invoke):
    text = cli_invoke("--help").stdout
    order = ["Measure:", "$ pipebench run", "Results:", "$ pipebench report", "Data:", "$ pipebench data"]
    positions = [text.index(word) for word in order]
    assert positions == sorted(positions)


@pytest.mark.parametrize("words", SUBCOMMANDS, ids=" ".join)
def test_every_subcommand_has_help_with_an_example_of_itself(cli_invoke, words):
    result = cli_invoke(*words, "--help")
    assert result.exit_code == 0
    assert f"Example: pipebench {' '.join(words)} " in " ".join(result.stdout.split())


def test_every_example_in_the_help_parses():
    for section in cli.SECTIONS.values():
        for _, example in section.values():
            program, *words = example.split()
            assert program == "pipebench"
            assert_parses(words)


@pytest.mark.parametrize("words", SUBCOMMANDS, ids=" ".join)
def test_every_example_below_the_help_of_a_subcommand_parses(words):
    command = cli.cli
    for word in words:
        command = command.get_command(click.Context(command), word)
    program, *example = command.epilog.removeprefix("Example: ").split()
    assert program == "pipebench"
    assert_parses(example)


def assert_parses(words):
    context = cli.cli.make_context("pipebench", list(words))
    command = cli.cli
    rest = [*context._protected_args, *context.args]
    while isinstance(command, click.Group):
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
        rest = [*getattr(context, "_protected_args", []), *context.args]
    assert rest == []


def test_no_subcommand_shows_the_help(cli_invoke):
    result = cli_invoke()
    assert result.exit_code == 2
    assert "Usage: pipebench" in result.stdout + result.stderr


def test_an_unknown_subcommand_is_named(cli_invoke):
    result = cli_invoke("rum")
    assert result.exit_code == 2
    assert "'rum'" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    "arguments, words",
    [
        # CL-01: a blank after the equals sign, an unset variable, a typo, and values out of range.
        (["--data-dir=", "/path"], ["--data-dir", "''", "blank after the '='"]),
        (["--data-dir", ""], ["--data-dir", "''", "shell variable unset"]),
        (["--batch-sise", "4"], ["--batch-sise", "--batch-size"]),
        (["--batch-size", "0"], ["--batch-size", "0", "x>=1"]),
        (["--batch-size", "-1"], ["--batch-size", "-1", "x>=1"]),
        (["--batch-size", "4.5"], ["--batch-size", "'4.5'"]),
        (["--echo-factor", "two"], ["--echo-factor", "'two'", "number from 1"]),
        (["--echo-factor", "0.5"], ["--echo-factor", "'0.5'", "number from 1"]),
        (["--echo-factor", "nan"], ["--echo-factor", "'nan'", "number from 1"]),
        (["--echo-factor", "-2"], ["--echo-factor", "'-2'"]),
        (["--echo-factor", ""], ["--echo-factor", "''"]),
        (["--insert-point", "after_lunch"], ["--insert-point", "'after_lunch'", "after_augment"]),
        (["--accelerator", "tpu-v9"], ["accelerator", "'tpu-v9'", "tpu-v2-8", "h100"]),
        (["--trainer", "vgg"], ["--trainer", "'vgg'", "inception_v3", "emulated"]),
        (["--steps", "3", "--seconds", "4"], ["--seconds, --steps and --epochs"]),
        (["--steps", "3", "--epochs", "4"], ["--seconds, --steps and --epochs"]),
        (["--steps", "0"], ["--steps", "0"]),
        (["--seconds", "nan"], ["--seconds", "'nan'", "above 0"]),
        (["--seconds", "inf"], ["--seconds", "'inf'"]),
        (["--epochs", "0"], ["--epochs", "0"]),
        (["--warmup-seconds", "nan"], ["warmup_seconds", "nan"]),
        (["--warmup-steps", "0"], ["--warmup-steps", "0"]),
        (["--jitter", "nan"], ["jitter", "nan"]),
        (["--jitter", "2"], ["--jitter", "2"]),
        (["--cb-distortion-range", "nan"], ["cb_distortion_range", "nan"]),
        (["--step-time-seconds", "0"], ["--step-time-seconds", "'0'"]),
        (["--learning-rate", "-0.1"], ["--learning-rate", "'-0.1'"]),
        (["--num-classes", "1"], ["--num-classes", "1"]),
        (["--seed", "-1"], ["--seed", "-1"]),
        (["--seed", str(2**31)], ["--seed", str(2**31)]),
        (["--split", ""], ["--split", "''"]),
        (["--file-pattern", ""], ["--file-pattern", "''"]),
        (["--output", ""], ["--output", "''"]),
        (["--on-bad-record", "ignore"], ["--on-bad-record", "'ignore'", "skip"]),
        (["--precision", "float16"], ["--precision", "'float16'", "bfloat16"]),
        (["stray"], ["stray"]),
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_wrong_option_is_answered_by_flag_value_and_rule(
    cli_invoke, tmp_path, monkeypatch, arguments, words
):
    monkeypatch.chdir(tmp_path)
    result = cli_invoke("run", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    for word in words:
        assert word in line
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


def failing(error):
    @click.command()
    def command():
        raise error

    return command


def test_a_user_error_is_one_line_and_its_exit_code(monkeypatch, cli_invoke):
    monkeypatch.setattr(
        cli.SectionedGroup, "get_command", lambda *_: failing(DataError("The disk is on fire."))
    )
    result = cli_invoke("run")
    assert result.exit_code == 2
    assert result.stderr == "Error: The disk is on fire.\n"


def test_debug_shows_the_traceback_and_keeps_the_exit_code(tmp_path):
    typo = str(tmp_path / "typo")
    result = run_process(RUN_MAIN, "--debug", "run", "--data-dir", typo, cwd=tmp_path)
    assert result.returncode == 2
    assert "Traceback" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("Error: ")
    assert typo in result.stderr.splitlines()[-1]
    plain = run_process(RUN_MAIN, "run", "--data-dir", typo, cwd=tmp_path)
    assert plain.returncode == 2
    assert "Traceback" not in plain.stderr


def test_an_interrupt_without_a_result_is_one_line(monkeypatch, cli_invoke):
    @click.command()
    def command():
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(cli.SectionedGroup, "get_command", lambda *_: command)
    result = cli_invoke("run")
    assert result.exit_code == 130
    assert result.stderr.strip() == "Interrupted."


def test_a_reader_that_goes_away_is_no_error():
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(
        [sys.executable, "-c", RUN_MAIN, "run", "--help"],
        stdout=writer,
        stderr=subprocess.PIPE,
        timeout=120,
        check=False,
    )
    os.close(writer)
    assert result.stderr == b""


def test_an_error_of_ours_is_not_hidden(monkeypatch):
    monkeypatch.setattr(cli.SectionedGroup, "get_command", lambda *_: failing(ZeroDivisionError("a bug")))
    with pytest.raises(ZeroDivisionError):
        cli.main(["run"])


@pytest.mark.parametrize("words", [["--debug", "run"], ["run", "--debug"]])
def test_debug_is_accepted_before_and_after_the_subcommand(cli_invoke, tmp_path, words):
    result = cli_invoke(*words, "--data-dir", tmp_path / "typo", "--output", tmp_path / "out")
    assert result.exit_code == 2
    assert "Traceback" in result.stderr
    assert not (tmp_path / "out").exists()
