"""docs/threat-model.md: no defence without a test that exists."""

from __future__ import annotations

import re

from tests.docs import pages
from tests.docs.guards import TESTS
from tests.docs.pages import DOCS

THREATS = list(pages.rows(DOCS / "threat-model.md", ""))


def test_every_defence_names_tests_that_exist() -> None:
    """A threat, what stands in its way, and what proves that it stands."""
    assert len(THREATS) > 20
    assert {row[0] for row in THREATS} == set("STRIDE")
    for _, threat, defence, proof in THREATS:
        named = re.findall(r"`([a-z_]+/test_[a-z_0-9]+\.py)`", proof)
        assert threat
        assert defence
        assert named, threat
        assert [name for name in named if not (TESTS / name).is_file()] == []
