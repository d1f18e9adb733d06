"""Companies: who buys."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from msgspec import Struct

from voucherd.money import Money


class CompanyExists(ValueError):
    """There is a company of that name already."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a company named {name!r} already")
        self.name = name


class BadCompany(ValueError):
    """Something about a company can't be right; `field` says what."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(rule)
        self.field = field


class CompanyNotFound(LookupError):
    """There is no such company."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no company named {name!r}")
        self.name = name


@dataclass(frozen=True, slots=True)
class Company:
    """A customer, as every order, key and wallet of it sees it."""

    id: int
    name: str
    country: str
    vat_number: str | None
    active: bool
    verified: bool
    expose_costs: bool
    spend_order_eur_minor: int | None = None
    """The most that one order may cost; None is no limit."""
    spend_day_eur_minor: int | None = None
    """The most that the orders of one day (UTC) may cost."""
    approve_from_eur_minor: int | None = None
    """Orders from here on need a second person; None: none do."""


@dataclass(frozen=True, slots=True)
class CompanyDraft:
    """A company before it is stored; refuses what the database would refuse, in words."""

    name: str
    country: str
    vat_number: str | None = None
    active: bool = True
    verified: bool = False
    expose_costs: bool = True

    def __post_init__(self) -> None:
        if not 1 <= len(self.name) <= 200:
            raise BadCompany("name", "a company's name has 1 to 200 characters")
        if not (len(self.country) == 2 and self.country.isascii() and self.country.isupper()):
            raise BadCompany(
                "country", f"{self.country!r} is not a country of two capital letters, such as NL"
            )
        if self.vat_number is not None and not 4 <= len(self.vat_number) <= 20:
            raise BadCompany("vat_number", "a VAT number has 4 to 20 characters")


class CompanyDetails(Struct, frozen=True):
    """What a company is called and where it is."""

    name: str
    country: str
    vat_number: str | None


class Policy(Struct, frozen=True):
    """What a company asks of its own people."""

    second_factor: bool = False
    approve_from_eur_minor: int | None = None
    """Orders from here on need a second person; None: none do."""

    def looser_than(self, before: Policy) -> bool:
        """Whether an order that needed a second person before would need none."""
        least, least_before = self.approve_from_eur_minor, before.approve_from_eur_minor
        return least_before is not None and (least is None or least > least_before)


class RuleChange(Struct, frozen=True):
    """A looser rule about second persons that a company waits for."""

    company_id: int
    approve_from_eur_minor: int | None
    asked_by: int
    asker: str
    """The address of who asked."""
    asker_name: str
    """Empty for who has told none."""
    holds_from: datetime

    @property
    def money(self) -> Money | None:
        """From which amount on the rule asks for a second person; None: it never does."""
        return None if self.approve_from_eur_minor is None else Money(self.approve_from_eur_minor, "EUR")
