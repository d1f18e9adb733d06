"""The operations on the sandbox, and on the request log."""

from __future__ import annotations

from typing import Final

from voucherd.api import query, request_log, sandbox_requests
from voucherd.api.errors import Op
from voucherd.api.operations.model import DescribedAnswer, Operation
from voucherd.api.wire import request_log as logged
from voucherd.api.wire import sandbox, shapes
from voucherd.request_log.collector import SECOND_OF_COMPANY_MAX
from voucherd.request_log.store import KEPT, SLOTS
from voucherd.wallet.deeds import FIRST_PLAY_MONEY

SANDBOX: Final[dict[Op, Operation]] = {
    Op.PLAY_MONEY: Operation(
        "topUpSandbox",
        "Top up play money",
        f"Adds play money to a balance of your sandbox, which began with {FIRST_PLAY_MONEY}. Nobody has to allow it.",
        (DescribedAnswer(200, "The balance.", shapes.Account),),
        (),
        sandbox_requests.TopUpBody,
        body_required=False,
    ),
    Op.CLOCK: Operation(
        "findClock",
        "Find clock",
        "The time in your company's sandbox, which all of its sandbox keys share.",
        (DescribedAnswer(200, "The clock.", sandbox.SandboxClock),),
    ),
    Op.ADVANCE_CLOCK: Operation(
        "advanceClock",
        "Advance clock",
        "Moves the time in your sandbox ahead, so that what takes hours is there in seconds: orders that are not "
        "confirmed expire, codes that are to come later come, a delivery window ends, webhooks that failed are tried "
        "again, one that fails for days is disabled. What your sandbox waits for comes closer by as much; dates that "
        "are past stay as they are, and so do purchases at suppliers, keys and everything that is live. Time never "
        "goes back.",
        (DescribedAnswer(200, "The clock, and what came closer.", sandbox.AdvancedClock),),
        (),
        sandbox_requests.AdvanceBody,
    ),
    Op.RESET_CLOCK: Operation(
        "resetClock",
        "Reset clock",
        "Lets the clock show the real time again. What has happened stays.",
        (DescribedAnswer(200, "The clock.", sandbox.SandboxClock),),
    ),
    Op.TRIGGER_EVENT: Operation(
        "triggerEvent",
        "Trigger event",
        "Brings an event about by doing what it tells of: for `order.finished` an order of one code is created, paid "
        "with play money and finished, so that a program which asks for it finds it. Only `wallet.low_balance` is told "
        "with made-up amounts. The event comes as any other, in the feed, in streams and to webhooks.",
        (DescribedAnswer(202, "It has happened.", sandbox.TriggeredEvent),),
        (),
        sandbox_requests.TriggerBody,
    ),
}
REQUESTS: Final[dict[Op, Operation]] = {
    Op.REQUESTS: Operation(
        "findRequests",
        "Find requests",
        f"The calls of your company's keys in the key's own state in the last {KEPT.days} days, newest first; the last "
        f"{SLOTS:,} of them at most. Of more than {SECOND_OF_COMPANY_MAX} calls in one second some are left out. A "
        "call is there a second after its answer.",
        (DescribedAnswer(200, "A page of calls.", logged.LoggedRequestPage),),
        request_log.PAGE,
    ),
    Op.REQUEST: Operation(
        "findRequest",
        "Find request",
        "The newest call with this `X-Request-Id`, with what was sent and answered. Codes, keys, secrets, links and "
        "fields that the API does not know are hidden.",
        (DescribedAnswer(200, "The call.", logged.LoggedRequestDetail),),
        (query.in_path("id", "`X-Request-Id` of its answer.", "req_7f3b1c9e04a20000002a"),),
    ),
}
