"""What only runs elsewhere: the workflow, Binder's environment, the citation file."""

import os
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import rope_minimal
from tests.tools import oldest

ROOT = Path(__file__).parents[2]
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "book.yml").read_text("utf8"))
JOBS = WORKFLOW["jobs"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]


def commands(job: dict) -> str:
    """Return everything that a job runs."""
    return "\n".join(step.get("run", "") for step in job["steps"])


def test_the_workflow_runs_on_changes_weekly_and_for_releases() -> None:
    triggers = WORKFLOW[True]  # YAML 1.1 reads the key "on" as true
    assert {"push", "pull_request", "workflow_dispatch", "release"} < triggers.keys()
    (when,) = triggers["schedule"]
    assert re.fullmatch(r"\d+ \d+ \* \* [0-6]", when["cron"])


def test_every_make_target_of_the_workflow_exists() -> None:
    makefile = (ROOT / "Makefile").read_text("utf8")
    targets = set(re.findall(r"^([\w./-]+):(?!=)", makefile, re.MULTILINE))
    called = {t for job in JOBS.values() for t in re.findall(r"\bmake (\S+)", commands(job))}
    assert {"test", "check", "links"} <= called
    assert called <= targets


@pytest.mark.parametrize("name", JOBS)
def test_a_job_is_bounded_and_waits_for_jobs_that_exist(name: str) -> None:
    job = JOBS[name]
    assert job["timeout-minutes"] <= 60
    assert job.get("needs", name) in JOBS
    for step in job["steps"]:
        assert ("run" in step) != ("uses" in step)
        # GitHub's own actions only, each by its commit: no other publisher gets a token
        uses = step.get("uses")
        assert uses is None or re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", uses)


def test_only_the_publishing_jobs_may_write() -> None:
    assert WORKFLOW["permissions"] == {"contents": "read"}
    writing = {name for name, job in JOBS.items() if "write" in job.get("permissions", {}).values()}
    assert writing == {"deploy", "release"}
    for name in writing:
        assert JOBS[name]["needs"] == "test"
        assert not any("checkout" in step.get("uses", "") for step in JOBS[name]["steps"])


def test_the_matrix_starts_at_the_oldest_python_promised() -> None:
    versions = JOBS["package"]["strategy"]["matrix"]["python"]
    promised = SpecifierSet(PROJECT["requires-python"])
    assert str(promised) == f">={versions[0]}"
    assert all(version in promised for version in versions)


def test_binder_installs_what_the_package_promises_to_work_with() -> None:
    environment = yaml.safe_load((ROOT / ".binder" / "environment.yml").read_text("utf8"))
    wanted = {}
    (by_pip,) = (line["pip"] for line in environment["dependencies"] if isinstance(line, dict))
    by_conda = [line for line in environment["dependencies"] if isinstance(line, str)]
    assert "pip" in by_conda  # which conda asks for by name
    for line in {*by_conda, *by_pip} - {"pip"}:
        name, rest = re.fullmatch(r"([\w-]+)([>=]=?.+)", line).groups()
        wanted[name.removesuffix("-cpu").replace("pytorch", "torch")] = rest
    assert f">{wanted.pop('python')}" == PROJECT["requires-python"]
    # triton is for machines with a GPU, which Binder has not; transformers for `make atlas`, gguf
    # for `make real`
    elsewhere = ("triton", "transformers", "gguf")
    promised = [Requirement(line) for line in oldest.promises()]
    assert {
        r.name: str(r.specifier) for r in promised if r.name not in elsewhere
    }.items() <= wanted.items()
    assert os.access(ROOT / ".binder" / "postBuild", os.X_OK)


def test_the_citation_file_says_what_the_package_is() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf8"))
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} < citation.keys()
    assert all("name" in author for author in citation["authors"])
    assert str(citation["version"]) == PROJECT["version"] == rope_minimal.__version__
