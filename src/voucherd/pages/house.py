"""The house: what the handlers of pages work with."""

from __future__ import annotations

from msgspec import Struct, field

from voucherd.db import Pool
from voucherd.events.streams import Streams
from voucherd.http import Still
from voucherd.ids import Identifiers
from voucherd.orders.service import OrderService
from voucherd.pages.background import BackgroundJobs
from voucherd.pages.cache import ReportCache
from voucherd.pages.recipient.visitors import Allowance
from voucherd.people.sign_in import SignIn
from voucherd.recipients.service import Recipients
from voucherd.settings import Settings
from voucherd.storefront.service import Storefront
from voucherd.vault.seal import Sealer
from voucherd.wallet.statement import Statements
from voucherd.webhooks.service import Webhooks


class House(Struct):
    """The same parts that the API's handlers use: nothing that a page does is done in another way."""

    pool: Pool
    orders: OrderService
    ids: Identifiers
    settings: Settings
    storefront: Storefront
    statements: Statements
    webhooks: Webhooks
    streams: Streams
    sealer: Sealer
    guide: Still
    """The guide for integrators, made from the API's own description."""
    recipients: Recipients
    entrance: SignIn
    allowance: Allowance = field(default_factory=Allowance)
    jobs: BackgroundJobs = field(default_factory=BackgroundJobs)
    kept: ReportCache = field(default_factory=ReportCache)
    """Reports, for half a minute."""
