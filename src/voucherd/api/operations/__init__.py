"""The description of each operation: its words, its parameters and its answers.

Its path and scopes stand in `routes`, what it refuses in `errors`, and its examples in `openapi/examples.json`.
"""

from __future__ import annotations

from typing import Final

from voucherd.api.operations import orders, resources, sandbox
from voucherd.api.operations.model import Section

SECTIONS: Final = (
    Section("Ordering", "Create an order, then confirm, resolve or cancel it.", orders.ORDERING),
    Section("Finding", "Read one order or many, its lines and its codes.", orders.FINDING),
    Section("Redemption links", "What recipients are asked before they see a code.", orders.REDEEMING),
    Section("Money", "Balances, and every movement of them.", resources.MONEY),
    Section("Events", "What happened, in pages and as it happens.", resources.EVENTS),
    Section("Webhooks", "Be told what happens: endpoints, and what was sent to them.", resources.WEBHOOKS),
    Section("Keys", "Your API keys: who may do what, from where and until when.", resources.KEYS),
    Section("Sandbox", "Play money, a clock that you move, and events that you ask for.", sandbox.SANDBOX),
    Section("Request log", "What your keys sent, and what they were answered.", sandbox.REQUESTS),
    Section("Catalogue", "What is for sale, at which price, and what changed.", resources.CATALOGUE),
)
OPERATIONS: Final = {op: operation for section in SECTIONS for op, operation in section.operations.items()}
SECTION_OF: Final = {op: section.name for section in SECTIONS for op in section.operations}
