import importlib.metadata
import json
import os
import platform
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import environment
from bench.environment import describe_environment, repeat_command, usable_cores


def test_the_environment_names_versions_processor_and_memory():
    described = describe_environment()
    assert set(described) == {"versions", "platform", "cpu", "cpu_cores", "memory_bytes"}
    assert described["versions"]["tensorflow"] == importlib.metadata.version("tensorflow")
    assert described["versions"]["pipebench"] == importlib.metadata.version("pipebench")
    assert described["versions"]["python"] == platform.python_version()
    assert described["cpu_cores"] >= 1
    assert described["memory_bytes"] > 100_000_000
    assert described["cpu"]
    assert json.loads(json.dumps(described)) == described


def test_a_package_that_is_not_installed_has_no_version(monkeypatch):
    def missing(package):
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert describe_environment()["versions"]["tensorflow"] is None


def test_cores_are_those_that_this_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 3, 5}, raising=False)
    assert usable_cores() == 3


def test_cores_are_those_of_the_machine_where_the_system_does_not_tell(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert usable_cores() == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores() == 1


def test_without_cpuinfo_the_processor_has_a_name_still(monkeypatch, tmp_path):
    monkeypatch.setattr(environment, "_CPU_INFO", str(tmp_path / "not-there"))
    monkeypatch.setattr(platform, "processor", lambda: "")
    monkeypatch.setattr(platform, "machine", lambda: "some-machine")
    assert describe_environment()["cpu"] == "some-machine"


def test_the_model_name_is_taken_from_cpuinfo(monkeypatch, tmp_path):
    path = tmp_path / "cpuinfo"
    path.write_text("processor\t: 0\nmodel name\t: Fast: 3 GHz\nmodel name\t: other\n")
    monkeypatch.setattr(environment, "_CPU_INFO", str(path))
    assert describe_environment()["cpu"] == "Fast: 3 GHz"


@pytest.mark.parametrize(
    "arguments, line",
    [
        (["run", "--steps", "3"], "pipebench run --steps 3"),
        (["run", "--data-dir", "my set [v1]*"], "pipebench run --data-dir 'my set [v1]*'"),
        (["run", "--data-dir=it's $HOME"], "pipebench run '--data-dir=it'\"'\"'s $HOME'"),
        ([], "pipebench"),
    ],
)
def test_the_command_to_repeat_is_quoted_for_a_shell(arguments, line):
    assert repeat_command(arguments) == line


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)))
def test_a_shell_reads_the_command_back_word_for_word(arguments):
    assert shlex.split(repeat_command(arguments)) == ["pipebench", *arguments]
