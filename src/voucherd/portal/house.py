"""The house: what the handlers of pages work with."""

from __future__ import annotations

from msgspec import Struct, field

from voucherd.access.sign_in import Entrance
from voucherd.db import Pool
from voucherd.events.streams import Streams
from voucherd.events.webhooks.service import Webhooks
from voucherd.http import Still
from voucherd.ids import Identifiers
from voucherd.orders.desk import Desk
from voucherd.orders.recipients import Recipients
from voucherd.portal.jobs import Jobs
from voucherd.portal.kept import Kept
from voucherd.portal.recipient.visitors import Allowance
from voucherd.settings import Settings
from voucherd.storefront.window import Window
from voucherd.vault.seal import Sealer
from voucherd.wallet.statement import Statements


class House(Struct):
    """The same parts that the API's handlers use: nothing that a page does is done in another way."""

    pool: Pool
    desk: Desk
    ids: Identifiers
    settings: Settings
    window: Window
    statements: Statements
    webhooks: Webhooks
    streams: Streams
    sealer: Sealer
    guide: Still
    """The guide for integrators, made from the API's own description."""
    recipients: Recipients
    entrance: Entrance
    allowance: Allowance = field(default_factory=Allowance)
    jobs: Jobs = field(default_factory=Jobs)
    kept: Kept = field(default_factory=Kept)
    """Reports, for half a minute."""
