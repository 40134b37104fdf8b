"""ci.py check: checks what the sections of src/cli/docs/ci.md publish, after the script has run.

The files are in the working directory: log (the script's output), coverage/ (its reports), github.yml, gitlab.yml,
Jenkinsfile, sonar-project.properties, build/ (after CTest has read the coverage) and gpu.dat (Bazel's).
ci.py commands: prints the shell commands of github.yml.
ci.py nightly: checks github.yml, the workflow of rocm-ci.md, and prints its shell commands after the script.
"""
import glob
import json
import os
import re
import sys
import xml.etree.ElementTree as etree

import yaml

SCRIPT = "sh ci/gpu-coverage"
REPORT = "coverage/report.json"


def load(path):
    with open(path) as file:
        return file.read()


def github():
    """The job, its commands, and the arguments of each action that it uses."""
    (job,) = yaml.safe_load(load("github.yml"))["jobs"].values()
    steps = job["steps"]
    assert all(("run" in step) != ("uses" in step) for step in steps), steps
    # What is published although the tests failed.
    assert [step.get("if") for step in steps] == [None, None, *["always()"] * (len(steps) - 2)], steps
    actions = {step["uses"].split("@")[0]: step.get("with", {}) for step in steps if "uses" in step}
    return job, [step["run"] for step in steps if "run" in step], actions


def nightly():
    job, commands, actions = github()
    # YAML 1.1 reads the key `on` as a boolean.
    (schedule,) = yaml.safe_load(load("github.yml"))[True]["schedule"]
    assert len(schedule["cron"].split()) == 5
    assert job["strategy"]["fail-fast"] is False and "rocprim" in job["strategy"]["matrix"]["component"]
    assert commands[0] == "sh ci/coverage ${{ matrix.component }}"
    codecov = actions["codecov/codecov-action"]
    assert codecov["flags"] == "${{ matrix.component }}" and "end_of_record" in load(codecov["files"])
    print("\n".join(commands[1:]))


def gitlab():
    (job,) = yaml.safe_load(load("gitlab.yml")).values()
    assert job["script"] == [SCRIPT], job
    pattern = job["coverage"]
    assert pattern[0] == pattern[-1] == "/"
    # GitLab takes the first number of the last line that matches.
    *_, line = [line for line in load("log").splitlines() if re.search(pattern[1:-1], line)]
    percent = re.search(r"\d+(?:\.\d+)?", line)[0]
    report = job["artifacts"]["reports"]["coverage_report"]
    assert report["coverage_format"] == "cobertura" and report["path"].startswith(job["artifacts"]["paths"][0])
    return job["variables"]["MIN_LINES"], percent, report["path"]


def jenkins():
    text = load("Jenkinsfile")
    code = re.sub(r"'[^']*'", "", text)
    for opening, closing in ("{}", "[]", "()"):
        assert code.count(opening) == code.count(closing) > 0, opening
    assert re.findall(r"\bsh '(.*)'", text) == [SCRIPT]
    (parser, pattern), = re.findall(r"parser: '(.*?)', pattern: '(.*?)'", text)
    assert parser == "COBERTURA" and "enabledForFailure: true" in text
    return float(re.search(r"threshold: ([0-9.]+)", text)[1]), pattern


def main():
    total = json.loads(load(REPORT))["combined"]["lines"]
    job, commands, actions = github()
    environment = job["env"]
    assert commands[0] == SCRIPT, commands
    lcov = actions["codecov/codecov-action"]["files"]
    names = re.findall("^SF:(.*)", load(lcov), re.M)
    assert names == ["src/waves.hip"], names
    limit, percent, gitlab_xml = gitlab()
    threshold, jenkins_xml = jenkins()
    assert environment["MIN_LINES"] == limit == threshold, (environment, limit, threshold)
    assert abs(float(percent) - 100 * total["covered"] / total["total"]) < 0.05, (percent, total)
    assert gitlab_xml == jenkins_xml
    cobertura = etree.parse(gitlab_xml).getroot()
    assert [cobertura.get("lines-covered"), cobertura.get("lines-valid")] == [str(total["covered"]), str(total["total"])]
    assert [one.get("filename") for one in cobertura.iter("class")] == names
    properties = dict(line.split("=", 1) for line in load("sonar-project.properties").split())
    sonar = etree.parse(properties["sonar.coverageReportPaths"]).getroot()
    assert [file.get("path") for file in sonar] == names and names[0].startswith(properties["sonar.sources"] + "/")
    lines = [line.get("covered") for line in sonar.iter("lineToCover")]
    assert [lines.count("true"), len(lines)] == [total["covered"], total["total"]]
    assert os.path.isdir(actions["actions/upload-artifact"]["path"])
    # CTest's own summary of what it has read.
    (ctest,) = glob.glob("build/Testing/*/Coverage.xml")
    ctest = etree.parse(ctest).getroot().find("Coverage")
    assert [file.get("FullPath") for file in ctest.iter("File")] == ["./" + name for name in names]
    tested, untested = int(ctest.findtext("LOCTested")), int(ctest.findtext("LOCUntested"))
    assert [tested, tested + untested] == [total["covered"], total["total"]]
    # The lines that Bazel's merger knows (LcovParser), and the paths of its manifest.
    records = load("gpu.dat").splitlines()
    known = re.compile(r"SF:.+|FN:\d+,([^,]+|\d+,[^,]+)|FNDA:\d+,[^,]+|BRDA:\d+,[^,]+,[^,]+,(-|\d+)|DA:\d+,\d+|(FNF|FNH|BRF|BRH|LF|LH):\d+|end_of_record")
    assert all(known.fullmatch(record) for record in records if record != "TN:"), records
    assert [record[3:] for record in records if record.startswith("SF:")] == names
    print("published:", percent, "%")


if sys.argv[1] == "commands":
    print("\n".join(github()[1]))
else:
    {"check": main, "nightly": nightly}[sys.argv[1]]()
