"""A lint: some things have to be named in more than one place; report the places where one is missing."""

import re

from spillway.common import REPO

INNOBASE = REPO / "storage/innobase"
SUITES = REPO / "mysql-test/suite"
VARIABLES = INNOBASE / "report/report0sysvars_list.inc"


def sources_not_built():
    text = (REPO / "cmake/sources.cmake").read_text()
    for folder, variable in ((INNOBASE, "spw_innobase"), (REPO / "sql", "spw_sql")):
        for path in sorted(folder.rglob("*.cc")):
            name = re.escape(f'"${{{variable}}}/{path.relative_to(folder)}"')
            if not re.search(rf"^\s*{name}\)?$", text, re.MULTILINE):
                yield f"cmake/sources.cmake does not build {path.relative_to(REPO)}"


def unit_tests_not_built():
    text = (REPO / "unittest/CMakeLists.txt").read_text()
    for path in sorted((REPO / "unittest").rglob("*.cc")):
        name = str(path.relative_to(REPO / "unittest"))
        if not re.search(rf"^\s*(add_executable\(\w+ )?{re.escape(name)}$", text, re.MULTILINE):
            yield f"unittest/CMakeLists.txt does not build {name}"


def policies_without_a_test():
    for path in sorted(INNOBASE.glob("*/policy/*.h")):
        test = REPO / "unittest" / path.parent.parent.name / f"{path.stem}-t.cc"
        if not test.exists():
            yield f"{path.relative_to(REPO)} has no {test.relative_to(REPO)}"


def variables_without_reference_or_test():
    reference = (REPO / "docs/reference/system-variables.md").read_text()
    downgrade = (REPO / "scripts/spillway-downgrade-check").read_text()
    for name in re.findall(r"MYSQL_SYSVAR\((\w+)\)", VARIABLES.read_text()):
        if not re.search(rf"^\| `innodb_{name}` \|", reference, re.MULTILINE):
            yield f"docs/reference/system-variables.md has no innodb_{name}"
        if f"\n  innodb_{name}\n" not in downgrade:
            yield f"scripts/spillway-downgrade-check has no innodb_{name}"
        if not (SUITES / f"sys_vars/t/innodb_{name}_basic.test").exists():
            yield f"innodb_{name} has no mysql-test/suite/sys_vars/t/innodb_{name}_basic.test"


def results_and_tests_apart():
    for suite in sorted(SUITES.iterdir()):
        tests = {path.stem for path in suite.glob("t/*.test")}
        results = {path.stem for path in suite.glob("r/*.result")}
        for name in sorted(tests - results):
            yield f"{suite.name}.{name} has no result: tools/mtr.py --record {suite.name}.{name}"
        for name in sorted(results - tests):
            yield f"mysql-test/suite/{suite.name}/r/{name}.result has no test"


def hooks_not_in_the_map():
    text = (INNOBASE / "README.md").read_text()
    for path in sorted((REPO / "patches").glob("*.patch")):
        header = path.read_text().partition("\n---\n")[0]
        for name in re.findall(r"spw::(\w+)\(\)", header):
            if f"`{name}`" not in text:
                yield f"storage/innobase/README.md has no {name}, which {path.name} calls"


def python_tests_not_run():
    """powercut/tests: the runner names each of its test files."""
    text = (REPO / "tools/runtests.py").read_text()
    for path in sorted((REPO / "powercut/tests").glob("test_*.py")):
        if f'"powercut.tests.{path.stem}"' not in text:
            yield f"tools/runtests.py does not run {path.relative_to(REPO)}"


def suites_not_run():
    text = (REPO / "tools/runtests.py").read_text()
    for suite in sorted(SUITES.iterdir()):
        if not re.search(rf"[\"=,]{suite.name}[\",.]", text):
            yield f"tools/runtests.py does not run the suite {suite.relative_to(REPO)}"


def forgotten():
    checks = (sources_not_built, unit_tests_not_built, policies_without_a_test, variables_without_reference_or_test,
              results_and_tests_apart, hooks_not_in_the_map, python_tests_not_run, suites_not_run)  # fmt: skip
    return [problem for check in checks for problem in check()]
