"""The services that every handler works with: the API and the pages do nothing in two ways."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

from msgspec import Struct, field

from voucherd.background import BackgroundJobs
from voucherd.db import Pool
from voucherd.events.streams import Streams
from voucherd.ids import Identifiers
from voucherd.limits.unknown_links import UnknownLinks
from voucherd.orders.service import OrderService
from voucherd.people.sign_in import SignIn
from voucherd.recipients.service import Recipients
from voucherd.replica import ReadPool
from voucherd.reports.cache import ReportCache
from voucherd.request_log.collector import RequestLog
from voucherd.settings import Settings
from voucherd.setup.running import RunningSettings
from voucherd.storefront.service import SampleProduct, Storefront
from voucherd.vault.seal import Sealer
from voucherd.wallet.statement import Statements
from voucherd.webhooks.listening import ListenerSecrets
from voucherd.webhooks.service import Webhooks


class Guide(Protocol):
    """The docs for integrators, made from the API's own description."""

    def page(self, path: str, product: SampleProduct | None) -> bytes | None:
        """The page at this path, with samples that order this product; None where there is no such page."""

    def found(self, query: str) -> bytes:
        """The page that lists what was found."""


class Services(Struct, kw_only=True):
    """Everything that a handler may ask, by name."""

    pool: Pool
    lists: ReadPool
    """For lists and reports, which decide nothing."""
    settings: Settings
    """Those that hold now: `running` replaces them when the operator chooses others."""
    running: RunningSettings
    root: bytes
    """The root of the vault's keys, which the set-up link is computed from."""
    sealer: Sealer
    ids: Identifiers
    orders: OrderService
    storefront: Storefront
    statements: Statements
    webhooks: Webhooks
    streams: Streams
    listener_secrets: ListenerSecrets
    """What signed streams are signed with."""
    request_log: RequestLog
    recipients: Recipients
    sign_in: SignIn
    guide: Guide
    unknown_links: UnknownLinks = field(default_factory=UnknownLinks)
    jobs: BackgroundJobs = field(default_factory=BackgroundJobs)
    reports: ReportCache = field(default_factory=ReportCache)
    """Reports, for half a minute."""

    def use(self, settings: Settings) -> None:
        """Work by these settings from now on."""
        self.settings = settings
        self.orders.use(settings)
        self.storefront.use(settings.operator_country, timedelta(seconds=settings.fx_age_s_max))
