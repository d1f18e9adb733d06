"""deploy/prometheus and deploy/grafana: rules that promtool accepts, about figures that a running shop exports."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.docs import pages
from tests.docs.pages import DOCS, ROOT
from tests.shop import open_shop
from voucherd.audit import noted
from voucherd.audit.noted import LastAudit
from voucherd.clock import now
from voucherd.db import Pool

RULES: Final = ROOT / "deploy" / "prometheus" / "alerts.yml"
RULE_TESTS: Final = RULES.with_name("alerts.test.yml")
DASHBOARD: Final = ROOT / "deploy" / "grafana" / "dashboard.json"
RUNBOOK: Final = DOCS / "runbooks" / "alerts.md"
TOKEN: Final = "s3cret-of-the-operator"

ALERTS: Final = re.findall(r"- alert: (\w+)", RULES.read_text(encoding="utf-8"))
NAMED: Final = re.compile(r"\b(voucherd_\w+)(?:\{([^}]*)\})?")


def promtool(*words: str) -> str:
    """What promtool says; it must be content."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed here")
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_rules_are_rules() -> None:
    """OP-126: Prometheus itself reads them, with as many alerts as the file has."""
    assert "SUCCESS" in promtool("check", "rules", str(RULES))
    assert len(ALERTS) == len(set(ALERTS)) > 15


def test_the_example_of_a_configuration_is_one() -> None:
    """OP-126: it reads the rules, and its jobs are those that the rules look for."""
    assert "SUCCESS" in promtool("check", "config", "--syntax-only", str(RULES.with_name("prometheus.yml")))
    jobs = re.findall(r"job_name: (\S+)", RULES.with_name("prometheus.yml").read_text(encoding="utf-8"))
    assert jobs
    assert all(job.startswith("voucherd") for job in jobs)


def test_the_rules_wake_somebody_when_they_should_and_only_then() -> None:
    """OP-126: burn rates, a process that hangs, a worker that is gone, old backups, a dirty audit, low stock."""
    promtool("test", "rules", str(RULE_TESTS))


def test_every_alert_has_its_section_of_the_runbook() -> None:
    """OP-126: in the order of the file; the address in the alert leads there."""
    text = RULES.read_text(encoding="utf-8")
    heads = re.findall(r"^## (\w+)$", pages.text_of(RUNBOOK), re.MULTILINE)
    assert heads == ALERTS
    led = re.findall(r"runbook_url: (\S+)#(\S+)", text)
    assert led == [("docs/runbooks/alerts.md", name.lower()) for name in ALERTS]
    assert {anchor for _, anchor in led} <= pages.anchors(RUNBOOK)
    for alert in text.split("- alert: ")[1:]:
        assert re.search(r"severity: (page|ticket|info)\}", alert), alert


def expressions() -> list[str]:
    """Everything that the rules and the dashboard ask Prometheus."""
    rules = re.sub(r"#.*", "", RULES.read_text(encoding="utf-8"))
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    asked = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    assert len(asked) > 20
    return [rules, *asked]


async def test_every_figure_that_is_asked_for_is_one_that_a_running_shop_exports(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    """OP-126: by name and by label, in a scrape of a shop that has sold; a name that is gone would be silence there."""
    noted.write(tmp_path, LastAudit(now(), 0))
    async with open_shop(pool, database_url, tmp_path, metrics_token=TOKEN) as shop:
        company = await shop.company()
        await shop.product("gift-10", stock=5)
        order = await shop.create(company, ("gift-10", 1))
        await shop.confirm(company, order["trx"])
        scraped = await shop.client.get("/metrics", headers={"authorization": f"Bearer {TOKEN}"})
        await shop.assert_books_balance()
    assert scraped.status_code == 200
    labels: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(scraped.text):
        ends = {"counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"]}.get(family.type, [""])
        for end in ends:
            labels.setdefault(family.name + end, set())
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
    for expression in expressions():
        for name, conditions in NAMED.findall(expression):
            assert name in labels, name
            asked = set(re.findall(r"(\w+)=~?\"", conditions))
            assert asked <= labels[name] or not labels[name], (name, asked)

    def value(name: str, **wanted: str) -> float:
        (found,) = [
            sample.value
            for family in text_string_to_metric_families(scraped.text)
            for sample in family.samples
            if sample.name == name and wanted.items() <= sample.labels.items()
        ]
        return found

    confirm = {"method": "PATCH", "route": "/api/1.03/order/confirm/{trx}", "outcome": "ok", "process": "0"}
    assert value("voucherd_route_seconds_count", **confirm) == 1
    assert value("voucherd_orders_total", operation="create", state="live") == 1
    assert value("voucherd_orders_total", operation="confirm", state="live") == 1
    assert value("voucherd_revenue_total", currency="EUR", state="live") == 9.5
    assert value("voucherd_stock_codes", product="gift-10") == 4
    assert value("voucherd_gate_batch_size_count", gate="confirm") == 1
    assert value("voucherd_gate_seconds_bucket", gate="confirm", le="+Inf") == 1
    assert value("voucherd_pool_wait_seconds_count") == 2
    assert value("voucherd_database_ready") == 1
    assert value("voucherd_audit_broken") == 0
    assert value("voucherd_process_up", process="0") == 1
