"""Calls made up from the OpenAPI document, with real names in them so that they get somewhere."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode, checks
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation

from tests.patience import HANG_S

CALL_S_MAX = HANG_S
ENDLESS = ("/api/1.03/event/stream",)
"""Their answers have no end to wait for; they have tests of their own."""

CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]


@dataclass
class Heard:
    """What came of all calls."""

    calls: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    failures: dict[str, str] = field(default_factory=dict)


class Caller:
    """Makes calls up and compares the answers with the document."""

    def __init__(
        self, document: dict[str, Any], url: str, bearer: dict[str, str], names: dict[str, list[str]]
    ) -> None:
        # Told of keys it would leave them out of many calls, which would be refused for that alone.
        self._schema = schemathesis.openapi.from_dict(_without_keys(document))
        self._url = url
        self._names = names
        self._session = requests.Session()
        self._bearer = bearer
        self.heard = Heard()

    def call_all(self, each: int) -> Heard:
        """So many calls of each operation: half as the document wants them, half not."""
        for found in self._schema.get_all_operations():
            assert isinstance(found, Ok), found
            operation: APIOperation[Any, Any, Any, Any] = found.ok()
            if operation.path in ENDLESS:
                continue
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                try:
                    try:
                        self._call(operation, mode, each // 2)
                    except Unsatisfiable:
                        # Nothing about such a call can be wrong.
                        self._call(operation, GenerationMode.POSITIVE, each // 2)
                except (Exception, FailureGroup) as failure:  # noqa: BLE001 - All are wanted, not just the first.
                    self.heard.failures[f"{operation.label} {mode.value}"] = str(failure)[:1_500]
        return self.heard

    def _call(self, operation: APIOperation[Any, Any, Any, Any], mode: GenerationMode, count: int) -> None:
        @seed(6)
        @settings(
            max_examples=count,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(operation.as_strategy(generation_mode=mode), st.integers(0, 65_535))
        def one(case: Case[Any], choice: int) -> None:
            # Real names three times out of four: what is made up is unknown, and all unknown things are alike.
            for name in case.path_parameters or {}:
                known = self._names.get(name, [])
                if known and choice % 4 != 3:
                    case.path_parameters[name] = known[choice // 4 % len(known)]
            # Half of the clients understand problem+json.
            accept = "application/problem+json" if choice % 2 else "*/*"
            sent = self._bearer if choice % 16 != 15 else {"authorization": "Bearer vk_live_unknown"}
            response = case.call(
                base_url=self._url,
                session=self._session,
                headers=sent | {"accept": accept},
                timeout=CALL_S_MAX,
            )
            self.heard.calls[operation.label] += 1
            self.heard.statuses[response.status_code] += 1
            case.validate_response(response, checks=CHECKS)

        one()


def _without_keys(document: dict[str, Any]) -> dict[str, Any]:
    paths = {
        path: {
            method: {name: part for name, part in operation.items() if name != "security"}
            if isinstance(operation, dict)
            else operation
            for method, operation in operations.items()
        }
        for path, operations in document["paths"].items()
    }
    return {name: part for name, part in document.items() if name != "security"} | {"paths": paths}
