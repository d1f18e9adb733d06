"""A supplier that speaks JSON over HTTP, as the operator describes it in a file. docs/suppliers.md explains each key.

Everything is checked when the description is read, so that a mistake in it shows before money depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct, field

from voucherd.money import DIGITS
from voucherd.suppliers import paths, templates
from voucherd.suppliers.exchange import check_url
from voucherd.suppliers.patterns import compile_code_pattern
from voucherd.suppliers.protocol import BULK_MAX

RULES_MAX: Final = 100
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
# These belong to the connection, or to the secret.
_OUR_HEADERS: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "accept-encoding"}
)
_NO_PURCHASE: Final = frozenset({"sku", "face", "face_minor", "currency"})
_QUOTE_MEANS: Final = frozenset({"not_found", "out_of_stock"})


class Means(StrEnum):
    """What an answer can mean."""

    BOUGHT = "bought"
    UNDER_WAY = "under_way"
    OUT_OF_STOCK = "out_of_stock"
    PRICE = "price"
    FUNDS = "funds"
    REJECTED = "rejected"
    CANCELLED = "cancelled"
    NOT_FOUND = "not_found"
    UNCLEAR = "unclear"


class _Strict(Struct, frozen=True, forbid_unknown_fields=True):
    """A table whose keys are all known."""


class Auth(_Strict, frozen=True):
    """How the secret is sent."""

    type: Literal["bearer", "basic", "header", "query", "none"] = "bearer"
    name: str = ""
    """The header, or the parameter of the query."""
    user: str = ""
    """For basic: the secret is the password."""


class Rule(_Strict, frozen=True):
    """An answer that means something, by its HTTP status, the value of the error field, or both."""

    means: Means
    http: int | list[int] | None = None
    code: str | int | list[str | int] | None = None


class AnswerFields(_Strict, frozen=True):
    """Where the values lie in an answer; empty for those that it does not have."""

    codes: str = ""
    serials: str = ""
    expires: str = ""
    status: str = ""
    error: str = ""
    reference: str = ""
    external_id: str = ""
    price: str = ""
    price_currency: str = ""
    price_unit: Literal["major", "minor"] = "major"
    price_of: Literal["code", "purchase"] = "code"
    sku: str = ""
    stock: str = ""
    never: list[str] = field(default_factory=list)
    """Expiries that stand for none, such as 0000-00-00."""


class DescribedCall(_Strict, frozen=True):
    """One request, and how its answer is read."""

    path: str
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] | list[Any] | None = None
    ok: list[int] = field(default_factory=lambda: [200, 201, 202])
    root: str = ""
    """The part of the answer that is about the purchase; a list of them may be searched by our reference."""
    fields: AnswerFields = AnswerFields()
    statuses: dict[str, Means] = field(default_factory=dict)
    errors: list[Rule] = field(default_factory=list)


class Description(_Strict, frozen=True):
    """The whole file."""

    base_url: str
    buy: DescribedCall
    quote: DescribedCall | None = None
    look_up: DescribedCall | None = None
    cancel: DescribedCall | None = None
    currency: str = ""
    """Of prices, where no field of an answer says it."""
    auth: Auth = Auth()
    headers: dict[str, str] = field(default_factory=dict)
    bulk_max: int = 1
    code_pattern: str = ""
    guard: Literal["quote", "supplier", "none"] = "quote"
    """Who sees to it that nothing is bought above the highest price."""
    plain_http: bool = False


def read(config: Mapping[str, Any]) -> Description:
    """The description; a ValueError that names the key if something in it is wrong."""
    raw = {key: value for key, value in config.items() if key != "answer"}
    shared = config.get("answer", {})
    if not isinstance(shared, dict):
        raise ValueError("answer: must be a table")
    for name in ("buy", "look_up", "cancel"):
        if isinstance(raw.get(name), dict):
            raw[name] = _with_shared(raw[name], shared)
    try:
        described = msgspec.convert(raw, Description)
    except msgspec.ValidationError as error:
        raise ValueError(explained(str(error))) from None
    _check(described)
    return described


def _with_shared(operation: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    """The operation's own words win; of rules, its own come first."""
    merged = {**shared, **operation}
    for key in ("fields", "statuses"):
        if isinstance(shared.get(key), dict) and isinstance(operation.get(key), dict):
            merged[key] = {**shared[key], **operation[key]}
    if isinstance(shared.get("errors"), list) and isinstance(operation.get("errors"), list):
        merged["errors"] = [*operation["errors"], *shared["errors"]]
    return merged


def explained(message: str) -> str:
    """The decoder's message with the key in front."""
    said, _, path = message.partition(" - at `$")
    key = path.rstrip("`").lstrip(".").replace("[...]", "")
    unknown = re.search(r"unknown field `(.+)`", said)
    missing = re.search(r"missing required field `(.+)`", said)
    if unknown or missing:
        name = (unknown or missing)[1]  # type: ignore[index]
        return f"{key}.{name}: ".lstrip(".") + ("is not a key that there is" if unknown else "is required")
    return f"{key or 'description'}: {said[:1].lower()}{said[1:]}"


def _check(described: Description) -> None:
    check_url("base_url", described.base_url, plain_http=described.plain_http)
    if not 1 <= described.bulk_max <= BULK_MAX:
        raise ValueError(f"bulk_max: must be between 1 and {BULK_MAX}")
    if described.currency and described.currency not in DIGITS:
        raise ValueError("currency: must be an ISO 4217 code in capitals")
    if described.code_pattern:
        _named("code_pattern", lambda: compile_code_pattern(described.code_pattern))
    _check_auth(described.auth)
    _check_headers("headers", described.headers, frozenset())
    for name in ("quote", "buy", "look_up", "cancel"):
        operation: DescribedCall | None = getattr(described, name)
        if operation is not None:
            _check_request(name, operation)
            _check_answer(name, operation)
    _check_money(described)


def _check_auth(auth: Auth) -> None:
    # A name that a header may have needs no escaping in a query, but for these.
    if auth.type in ("header", "query") and (
        not _HEADER.fullmatch(auth.name) or set(auth.name) & set("#%&+")
    ):
        raise ValueError(f"auth.name: must name the {auth.type} that carries the secret")
    if auth.type == "header" and auth.name.lower() in _OUR_HEADERS:
        raise ValueError("auth.name: is a header that belongs to the connection")
    if auth.type == "basic" and (not auth.user.isascii() or not auth.user.isprintable() or ":" in auth.user):
        raise ValueError("auth.user: must be printable ASCII without a colon")


def _check_headers(key: str, headers: Mapping[str, str], blanks: frozenset[str]) -> None:
    for name, value in headers.items():
        if not _HEADER.fullmatch(name) or name.lower() in _OUR_HEADERS:
            raise ValueError(f"{key}.{name}: is not a header that can be set")
        if not value.isascii() or not value.isprintable():
            raise ValueError(f"{key}.{name}: must be printable ASCII")
        _named(f"{key}.{name}", lambda value=value: templates.check(value, blanks))


def _check_request(name: str, operation: DescribedCall) -> None:
    blanks = _NO_PURCHASE if name == "quote" else templates.BLANKS
    if not operation.path.startswith("/") or not operation.path.isascii() or " " in operation.path:
        raise ValueError(f"{name}.path: must start with / and have no spaces")
    if "?" in operation.path or "#" in operation.path:
        raise ValueError(f"{name}.path: must have no query; that is {name}.query")
    _check_headers(f"{name}.headers", operation.headers, blanks)
    for part in ("path", "query", "body"):
        _named(f"{name}.{part}", lambda part=part: templates.check(getattr(operation, part), blanks))
    if operation.body is not None and operation.method in ("GET", "DELETE"):
        raise ValueError(f"{name}.body: a {operation.method} has none")
    try:
        msgspec.json.encode(operation.body)
    except (TypeError, ValueError):
        raise ValueError(f"{name}.body: has a value that JSON does not have") from None
    whole = (operation.path, operation.query, operation.headers, operation.body)
    if name != "quote" and not templates.uses(list(whole), "reference"):
        raise ValueError(f"{name}: must send {{reference}}, or a purchase could not be told from another")


def _check_answer(name: str, operation: DescribedCall) -> None:
    fields = operation.fields
    for key in ("codes", "serials", "expires", "status", "error", "reference", "external_id", "price",
                "price_currency", "sku", "stock"):  # fmt: skip
        if path := getattr(fields, key):
            _named(f"{name}.fields.{key}", lambda path=path: paths.parse(path))
    if operation.root:
        _named(f"{name}.root", lambda: paths.parse(operation.root))
        if paths.is_list(paths.parse(operation.root)) and not (
            fields.sku if name == "quote" else fields.reference
        ):
            raise ValueError(
                f"{name}.fields.{'sku' if name == 'quote' else 'reference'}: is required for a list"
            )
    if not operation.ok or not all(200 <= status <= 299 for status in operation.ok):
        raise ValueError(f"{name}.ok: must be statuses between 200 and 299")
    if len(operation.errors) > RULES_MAX:
        raise ValueError(f"{name}.errors: must be at most {RULES_MAX} rules")
    for at, rule in enumerate(operation.errors):
        _check_rule(f"{name}.errors[{at}]", name, rule, fields)
    if operation.statuses and not fields.status:
        raise ValueError(f"{name}.fields.status: is required where there are statuses")
    if name == "buy" and Means.NOT_FOUND in operation.statuses.values():
        raise ValueError("buy.statuses: a purchase just made can't be not_found")
    if name in ("buy", "look_up"):
        _check_codes(name, fields)


def _check_rule(key: str, name: str, rule: Rule, fields: AnswerFields) -> None:
    if rule.http is None and rule.code is None:
        raise ValueError(f"{key}: must have http, code or both")
    if rule.code is not None and not fields.error:
        raise ValueError(f"{name}.fields.error: is required for a rule with a code")
    if rule.means is Means.BOUGHT:
        raise ValueError(f"{key}.means: only an answer with codes can mean bought")
    if name == "buy" and rule.means is Means.NOT_FOUND:
        raise ValueError(f"{key}.means: a purchase just made can't be not_found")
    if name == "quote" and rule.means not in _QUOTE_MEANS:
        raise ValueError(f"{key}.means: must be not_found or out_of_stock for a price")


def _check_codes(name: str, fields: AnswerFields) -> None:
    if not fields.codes:
        raise ValueError(f"{name}.fields.codes: is required")
    rows = paths.rows_of(paths.parse(fields.codes))
    for key in ("serials", "expires"):
        path = getattr(fields, key)
        # A date may hold for the whole purchase; a serial belongs to one code.
        if path and paths.rows_of(paths.parse(path)) != rows and not (key == "expires" and "[]" not in path):
            raise ValueError(f"{name}.fields.{key}: must lie in the same list as the codes")


def _check_money(described: Description) -> None:
    quote = described.quote
    if quote is not None and not quote.fields.price:
        raise ValueError("quote.fields.price: is required")
    for name in ("quote", "buy", "look_up", "cancel"):
        operation: DescribedCall | None = getattr(described, name)
        if operation is None or not operation.fields.price:
            continue
        if not operation.fields.price_currency and not described.currency:
            raise ValueError(
                f"{name}.fields.price_currency: is required where there is no currency for all prices"
            )
    if described.guard == "quote" and quote is None:
        raise ValueError("guard: without a quote it must be supplier (with {price_max} in buy) or none")
    asked = [described.buy.path, described.buy.query, described.buy.headers, described.buy.body]
    if described.guard == "supplier" and not any(
        templates.uses(asked, blank) for blank in ("price_max", "price_max_minor")
    ):
        raise ValueError("guard: supplier needs {price_max} or {price_max_minor} in buy")


def _named(key: str, check: Any) -> None:
    try:
        check()
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None
