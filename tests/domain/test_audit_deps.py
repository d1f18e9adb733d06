"""The audit of dependencies: silence is not taken for a good answer."""

from __future__ import annotations

import pytest

from tools.audit_deps import FOUND, NOT_ASKED, judge


def test_what_could_not_be_asked_is_said_and_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a network nothing was audited, and the target fails in so many words."""
    sound = {"name": "a", "version": "1", "vulns": []}
    flaw = {"id": "CVE-1", "fix_versions": ["3"]}

    assert judge([sound]) == 0
    assert judge([sound, {"name": "b", "skip_reason": "not found"}]) == NOT_ASKED
    assert judge([]) == NOT_ASKED
    assert judge([sound, {"name": "c", "version": "2", "vulns": [flaw]}]) == FOUND
    said = capsys.readouterr().out
    assert "1 of 2 locked packages could NOT be audited" in said
    assert "c 2: CVE-1, fixed in 3" in said
