"""The dashboard and the alerting rules in share/spillway, with Debian's Prometheus and mysqld_exporter."""

import contextlib
import itertools
import json
import re
import shutil
import signal
import subprocess
import unittest
import urllib.error
import urllib.parse
import urllib.request
from http import HTTPStatus
from pathlib import Path

import documents
from spillway.common import DIES_WITH_US, REPO

from .scratch import FORK, STOCK, Scratch, wait_until

DASHBOARD = REPO / "share/spillway/grafana-flushing-and-stalls.json"
ALERTS = REPO / "share/spillway/prometheus-alerts.yml"
RULE_TESTS = Path(__file__).with_name("alerts_test.yml")
PREFIX = "mysql_global_status_"
EXPORTER = "prometheus-mysqld-exporter"
NOT_INSTALLED = f"prometheus and {EXPORTER} are not installed: tools/install-packages monitoring"
ANSWER_SECONDS = 10
STOP_SECONDS = 20
# Grafana's grid.
COLUMNS = 24
# What Grafana replaces, and the step of subqueries: Prometheus scrapes once a second here.
INTERVALS = {"$__rate_interval": "30s", ":15s]": ":1s]"}
# Rates need two samples.
SCRAPES = 4
# Not scraped, as Prometheus has no texts as values. While it is 'off' mysqld_exporter has it as 0.
TEXTS = {"Innodb_ahead_flush_throttle_state"}
STALL = re.compile(r"Innodb_stall_(\w+)_over_1s")


def panels():
    return json.loads(DASHBOARD.read_text())["panels"]


def expressions():
    """The expressions of the dashboard: (title of the panel, expression)."""
    return [(panel["title"], target["expr"]) for panel in panels() for target in panel.get("targets", ())]


def alternatives(pattern):
    """The patterns for each choice of the groups (a|b) in a pattern."""
    parts = [part.split("|") for part in re.split(r"[()]", pattern)]
    return ["".join(choice) for choice in itertools.product(*parts)]


def names_in(expression):
    """The names that an expression reads."""
    return re.findall(rf"{PREFIX}\w+", re.sub(r'"[^"]*"', "", expression))


def name_patterns_in(expression):
    """The patterns of names that an expression reads."""
    return re.findall(r'__name__=~"([^"]*)"', expression)


def metric(variable):
    """How mysqld_exporter names a status variable: some counters of pages are one metric with a label."""
    if found := re.fullmatch(r"Innodb_buffer_pool_pages_(\w+)", variable):
        return f'{PREFIX}buffer_pool_page_changes_total{{operation="{found.group(1).lower()}"}}'
    return PREFIX + variable.lower()


def fetch(url):
    """The status and the text of an answer."""
    # Not by a proxy that the environment names.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=ANSWER_SECONDS) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@contextlib.contextmanager
def listening(name, folder, *command):
    """Run a program that listens on a free port of 127.0.0.1, which its log names. Gives the address."""
    log = folder / f"{name}.log"
    with open(log, "w") as file:
        process = subprocess.Popen([*DIES_WITH_US, *command, "--web.listen-address=127.0.0.1:0"],
                                   stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)  # fmt: skip
    try:
        port = re.compile(r'msg="Listening on" address=(127\.0\.0\.1:[1-9]\d*)')
        wait_until(lambda: process.poll() is not None or port.search(log.read_text()), f"{name} does not listen")
        if process.poll() is not None:
            raise AssertionError(f"{name} ended: {log.read_text()[-2000:]}")
        yield port.search(log.read_text()).group(1)
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Prometheus:
    """A Prometheus that scrapes one exporter each second, and evaluates our rules."""

    def __init__(self, address, instance):
        self.address = address
        self.instance = instance

    def get(self, path, **parameters):
        status, text = fetch(f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}")
        if status != HTTPStatus.OK:
            raise AssertionError(f"{path} {parameters}: {status} {text}")
        return json.loads(text)["data"]

    def is_ready(self):
        return fetch(f"http://{self.address}/-/ready")[0] == HTTPStatus.OK

    def query(self, expression):
        """The samples of an expression: (labels, value)."""
        return [(each["metric"], each["value"][1]) for each in self.get("query", query=expression)["result"]]

    def panel(self, expression):
        """The same as Grafana asks."""
        for word, value in ({"$instance": self.instance} | INTERVALS).items():
            expression = expression.replace(word, value)
        return self.query(expression)

    def rules(self):
        return [rule for group in self.get("rules")["groups"] for rule in group["rules"]]

    def state(self, alert):
        """inactive, pending or firing."""
        [state] = [rule["state"] for rule in self.rules() if rule["name"] == alert]
        return state


class MonitoredServer(Scratch):
    """A server with an exporter and a Prometheus."""

    def status(self):
        return dict(line.split("\t") for line in self.sql("SHOW GLOBAL STATUS").splitlines() if "\t" in line)

    def monitor(self, stack):
        """Start both; they end with the stack. Returns the Prometheus."""
        self.sql("CREATE USER exporter@localhost IDENTIFIED BY 'exporter'; GRANT PROCESS, REPLICATION CLIENT, SELECT ON"
                 " *.* TO exporter@localhost")  # fmt: skip
        login = self.path / "exporter.cnf"
        login.write_text(f"[client]\nuser=exporter\npassword=exporter\nsocket={self.path}/s\n")
        # This exporter asks for SHOW SLAVE STATUS, which MySQL 8.4 has removed.
        exporter = stack.enter_context(listening("exporter", self.path, EXPORTER, f"--config.my-cnf={login}",
                                                 "--no-collect.slave_status"))  # fmt: skip
        settings = self.path / "prometheus.yml"
        settings.write_text(
            "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
            f"rule_files: [{ALERTS}]\n"
            f"scrape_configs: [{{job_name: mysql, static_configs: [{{targets: ['{exporter}']}}]}}]\n"
        )
        address = stack.enter_context(listening("prometheus", self.path, "prometheus", f"--config.file={settings}",
                                                f"--storage.tsdb.path={self.path}/prometheus"))  # fmt: skip
        prometheus = Prometheus(address, exporter)
        wait_until(prometheus.is_ready, "Prometheus is not ready")
        scrapes = f"sum_over_time(mysql_up[1m]) >= {SCRAPES}"
        wait_until(lambda: prometheus.query(scrapes), "Prometheus does not scrape")
        wait_until(lambda: all(rule["health"] != "unknown" for rule in prometheus.rules()), "a rule is not evaluated")
        return prometheus


@unittest.skipUnless(shutil.which("prometheus") and shutil.which(EXPORTER), NOT_INSTALLED)
class Scraped(unittest.TestCase):
    def test_everything_that_is_read_is_there(self):
        stack = self.enterContext(contextlib.ExitStack())
        server = stack.enter_context(MonitoredServer())
        server.initialise(STOCK)
        server.start(STOCK)
        stock = server.status()
        self.assertEqual(server.end(), 0)
        server.start(FORK, "--innodb-ahead-flushing=ON")
        prometheus = server.monitor(stack)
        status = server.status()
        names = set(prometheus.get("label/__name__/values"))
        self.check_variables(prometheus, status, status.keys() - stock.keys(), names)
        self.check_dashboard(prometheus, {found.group(1) for found in map(STALL.fullmatch, status) if found})
        self.check_rules(prometheus, names)

    def test_a_server_that_does_not_answer(self):
        """As in a stall: a stopped process. The exporter does not connect, and the alert begins."""
        stack = self.enterContext(contextlib.ExitStack())
        server = stack.enter_context(MonitoredServer())
        server.initialise(FORK)
        server.start(FORK)
        prometheus = server.monitor(stack)
        self.assertEqual(prometheus.state("SpillwayNotReadable"), "inactive")
        server.process.send_signal(signal.SIGSTOP)
        try:
            # It fires after a minute.
            wait_until(lambda: prometheus.state("SpillwayNotReadable") == "pending", "the alert does not begin")
            self.assertFalse(prometheus.query(f"{PREFIX}innodb_stall_commit_count"))
        finally:
            server.process.send_signal(signal.SIGCONT)
        wait_until(lambda: prometheus.state("SpillwayNotReadable") == "inactive", "the alert does not end")

    def check_variables(self, prometheus, status, ours, names):
        """Each status variable of ours is scraped."""
        self.assertTrue(ours)
        texts = {name for name in ours if not re.fullmatch(r"-?\d+(\.\d+)?", status[name])}
        self.assertEqual(texts, TEXTS)
        missing = [name for name in sorted(ours - texts) if not prometheus.query(metric(name))]
        self.assertEqual(missing, [])
        self.assertEqual({metric(name) for name in texts} & names, set())
        [(_, value)] = prometheus.query(metric("Innodb_checkpoint_max_age"))
        self.assertEqual(value, status["Innodb_checkpoint_max_age"])

    def check_dashboard(self, prometheus, kinds):
        """Each expression of the dashboard returns data, and one of all kinds of stall returns data of each."""
        without = []
        for title, expression in expressions():
            samples = prometheus.panel(expression)
            found = {labels["kind"] for labels, _ in samples if "kind" in labels}
            if not samples or (found and found != kinds):
                without.append((title, expression, sorted(kinds - found) if found else "no data"))
        self.assertEqual(without, [])

    def check_rules(self, prometheus, names):
        """Each rule is evaluated, and each name in it is scraped."""
        rules = prometheus.rules()
        self.assertEqual({rule["name"] for rule in rules}, set(re.findall(r"- alert: (\w+)", ALERTS.read_text())))
        for rule in rules:
            with self.subTest(rule["name"]):
                self.assertEqual((rule["health"], rule.get("lastError", "")), ("ok", ""))
                query = rule["query"]
                wanted = [*names_in(query), *(each for one in name_patterns_in(query) for each in alternatives(one))]
                self.assertTrue(wanted)
                self.assertEqual([each for each in wanted if not any(re.fullmatch(each, name) for name in names)], [])


@unittest.skipUnless(shutil.which("promtool"), NOT_INSTALLED)
class Rules(unittest.TestCase):
    def promtool(self, *arguments):
        result = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_check(self):
        self.promtool("check", "rules", ALERTS)

    def test_unit_tests(self):
        self.promtool("test", "rules", RULE_TESTS)


class Text(unittest.TestCase):
    def test_each_rule_has_a_unit_test(self):
        rules = re.findall(r"- alert: (\w+)", ALERTS.read_text())
        self.assertEqual(len(rules), len(set(rules)))
        self.assertEqual(set(rules), set(re.findall(r'alertname="(\w+)"', RULE_TESTS.read_text())))

    def test_each_rule_says_what_to_do(self):
        for rule in ALERTS.read_text().split("- alert: ")[1:]:
            with self.subTest(rule.partition("\n")[0]):
                self.assertRegex(rule, r"\n +severity: (critical|warning|info)\n")
                for annotation in ("summary", "description"):
                    self.assertRegex(rule, rf"\n +{annotation}: \S")
                page, _, anchor = re.search(r"\n +guide: (\S+)\n", rule).group(1).partition("#")
                text = (REPO / page).read_text()
                if anchor:
                    self.assertIn(anchor, documents.anchors(text))

    def test_dashboard(self):
        """Grafana has not read the dashboard: its form is checked."""
        taken = set()
        for panel in panels():
            with self.subTest(panel["title"]):
                place = panel["gridPos"]
                cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                         for y in range(place["y"], place["y"] + place["h"])}  # fmt: skip
                self.assertFalse(cells & taken, "it covers another panel")
                self.assertLessEqual(place["x"] + place["w"], COLUMNS)
                taken |= cells
                if panel["type"] == "row":
                    continue
                self.assertTrue(panel["description"])
                self.assertTrue(panel["fieldConfig"]["defaults"]["unit"])
                letters = [target["refId"] for target in panel["targets"]]
                self.assertEqual(len(letters), len(set(letters)))
                for target in panel["targets"]:
                    # Each name is read of the server that the reader has chosen.
                    reads = names_in(target["expr"]) + name_patterns_in(target["expr"])
                    self.assertEqual(len(reads), target["expr"].count('instance=~"$instance"'), target["expr"])
        numbers = [panel["id"] for panel in panels()]
        self.assertEqual(len(numbers), len(set(numbers)))


if __name__ == "__main__":
    unittest.main()
