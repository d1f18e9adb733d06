"""The operations on orders."""

from __future__ import annotations

from typing import Final

from voucherd.api import order_parts, outcomes, query, requests
from voucherd.api.errors import Op
from voucherd.api.operations.model import DescribedAnswer, Operation
from voucherd.api.wire import shapes
from voucherd.api.wire.quote import QuotedOrder
from voucherd.recipients.pins import PIN_DIGITS_PROPOSED, TRIES_MAX

SLUG: Final = "brightbean-25-eur"
TRX: Final = query.in_path("trx", "The trx that Create order returned.", "TRX7TYXHWW877DA0ACVDW309D5P25")
_ORDER: Final = (shapes.ExtendedOrder, shapes.ShortOrder)

ORDERING: Final[dict[Op, Operation]] = {
    Op.CREATE: Operation(
        "createOrder",
        "Create order",
        "Checks price and availability and fixes the price for 24 hours. Nothing is paid and no code is delivered "
        "yet: confirm or resolve the order for that, or leave it to expire at no cost.",
        (DescribedAnswer(201, "The order was created.", _ORDER),),
        (outcomes.parameter(Op.CREATE),),
        body=requests.CreateBody,
    ),
    Op.QUOTE: Operation(
        "quoteOrder",
        "Quote order",
        "What Create would answer now, for the same body and with the same refusals, without an order: nothing is "
        "kept, no price is fixed, and there is nothing to confirm. `isAvailable` says whether all codes could be "
        "delivered at once; where it is false, some would come later.",
        (DescribedAnswer(200, "The price of the cart.", QuotedOrder),),
        (outcomes.parameter(Op.QUOTE),),
        body=requests.CreateBody,
    ),
    Op.CONFIRM: Operation(
        "confirmOrder",
        "Confirm order",
        "Takes the price from your balance and delivers the codes. For bulk orders and all that need not be there "
        "this second: the call waits about 25 seconds for the last code, then answers with the order as it is. "
        "Then it is `pending`, the codes that are there are in it, and the rest is delivered in the background.\n\n"
        "Only an order that is `created` can be confirmed. A line whose `allowAsyncDelivery` is false must be in "
        "stock; any other may wait. In the answer a line that is not finished has only `tag` and `status`.",
        (
            DescribedAnswer(
                200, "The order, `finished` or `pending`; with a sandbox key it may be `cancelled`.", _ORDER
            ),
        ),
        (TRX, outcomes.parameter(Op.CONFIRM)),
    ),
    Op.RESOLVE: Operation(
        "resolveOrder",
        "Resolve order",
        "Delivers the whole order now, or cancels it without a charge. For webshops and points of sale: it never "
        "waits in a batch behind other orders, and the answer is there within 30 seconds.\n\n"
        "Only an order that is `created` and has exactly one item (of any amount) can be resolved. In the answer a "
        "line that is not finished has only `tag` and `status`.",
        (DescribedAnswer(200, "The order, `finished` or `cancelled`.", _ORDER),),
        (TRX, outcomes.parameter(Op.RESOLVE)),
    ),
    Op.CANCEL: Operation(
        "cancelOrder",
        "Cancel order",
        "Deletes an order that is `created`; it can no longer be found. Cancels one that is `pending`: codes that "
        "were delivered stay delivered and paid for, all other lines are cancelled and refunded.",
        (
            DescribedAnswer(
                200,
                "The order was confirmed before: it is `cancelled`, and what was not delivered is refunded.",
                _ORDER,
            ),
            DescribedAnswer(204, "The order was not confirmed: it is deleted and nothing was charged."),
        ),
        (TRX,),
    ),
}
FINDING: Final[dict[Op, Operation]] = {
    Op.FIND_ALL: Operation(
        "findOrders",
        "Find all orders",
        "Your company's orders in the key's own state, newest first, a page at a time. Deleted orders never appear. "
        "Use `page` for a list that people leaf through. Use `cursor` to walk through all orders: its cost is the "
        "same at any depth and new orders do not shift it; the totals are left out then. A page looks at 10,000 orders "
        "at most, so where few of very many fit it may be short: go on while `nextCursor` is not null.",
        (DescribedAnswer(200, "A page of orders.", (shapes.ExtendedOrderPage, shapes.ShortOrderPage)),),
        requests.FIND_ALL,
    ),
    Op.FIND: Operation(
        "findOrder",
        "Find order",
        "The order as it stands. Ask again for an order that is `pending` until it is `finished` or `cancelled`, or "
        "let the call wait for that.",
        (DescribedAnswer(200, "The order.", _ORDER),),
        (TRX, requests.WAIT),
    ),
    Op.LINES: Operation(
        "findOrderLines",
        "Find order lines",
        "The lines of an order in pages, for orders that are too large to read at once. The lines are the same as "
        "those of Find order in version 1.03, and each page shows them as they stand when it is read.",
        (DescribedAnswer(200, "A page of lines.", shapes.LinePage),),
        (TRX, *order_parts.LINES),
    ),
    Op.CODES: Operation(
        "downloadCodes",
        "Download codes",
        "The codes of the order's finished lines as a CSV file, however many. Once the first code has left, "
        "`downloaded` of the order is true.\n\n"
        "Codes and serials are in quotes and exactly as they are, because a changed code is worth nothing. One that "
        "begins with `=`, `+`, `-` or `@` may look like a formula to a spreadsheet: import the columns as text.",
        (DescribedAnswer(200, "The codes, one a line."),),
        (TRX,),
    ),
}
REDEEMING: Final[dict[Op, Operation]] = {
    Op.PROTECT: Operation(
        "protectOrder",
        "Set a PIN",
        "Puts a PIN before every code behind the order's redemption links, another one, or (`null`) none. Nobody can "
        f"read it again: tell it to your recipients by another way than the link. After {TRIES_MAX} wrong ones, at "
        "whichever links of the order, all of them wait for 15 minutes, then twice as long each time, up to a day; "
        f"with fewer than {PIN_DIGITS_PROPOSED} digits an hour, up to three days. Your owners and buyers are told by "
        "mail, and a new PIN begins anew. A network that tries many has to wait, too. A PIN may be set before the "
        "order is confirmed, so that no link is ever without it.",
        (DescribedAnswer(200, "The links ask for the PIN from now on.", shapes.Redemption),),
        (TRX,),
        order_parts.RedemptionBody,
    ),
}
