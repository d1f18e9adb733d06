"""Every page: all but the console's, which has a table of its own."""

from __future__ import annotations

from typing import Final

from voucherd.pages import guide, sign_in
from voucherd.pages.buyer import (
    balances,
    bulk,
    cart,
    catalogue,
    checkout,
    codes,
    keys,
    links,
    order_list,
    orders,
    requests,
    sandbox,
    webhooks,
)
from voucherd.pages.console.pages import PAGES as CONSOLE
from voucherd.pages.page import Audience, Page
from voucherd.pages.people import account, approvals, security
from voucherd.pages.people import links as mailed
from voucherd.pages.people.team import STAFF, TEAM
from voucherd.pages.recipient import link
from voucherd.pages.setup.pages import PAGES as SET_UP
from voucherd.people.roles import Right
from voucherd.router import Router, names

_PUBLIC, _ANY = Audience.PUBLIC, Audience.SIGNED_IN
_BUYER, _OPERATOR = Audience.COMPANY, Audience.OPERATOR
_WALLET, _KEYS, _HOOKS = Right.WALLET_VIEW, Right.KEYS_MANAGE, Right.WEBHOOKS_MANAGE
_VIEW, _PLACE, _CODES = Right.ORDERS_VIEW, Right.ORDERS_PLACE, Right.CODES_VIEW

BUYER: Final[tuple[Page, ...]] = (
    Page("GET", "/portal", orders.overview, _BUYER),
    Page("GET", "/portal/catalogue", catalogue.catalogue, _BUYER, _VIEW),
    Page("GET", "/portal/catalogue/{slug}", catalogue.product, _BUYER, _VIEW),
    Page("GET", "/portal/cart", cart.cart, _BUYER, _PLACE),
    Page("POST", "/portal/cart/add", cart.add, _BUYER, _PLACE),
    Page("POST", "/portal/cart/change", cart.change, _BUYER, _PLACE),
    Page("POST", "/portal/cart/order", checkout.order, _BUYER, _PLACE),
    Page("GET", "/portal/bulk", bulk.form, _BUYER, _PLACE),
    Page("GET", "/portal/bulk/sample", bulk.sample, _BUYER, _PLACE),
    Page("POST", "/portal/bulk", bulk.check, _BUYER, _PLACE, bulk.BODY_BYTES_MAX),
    Page("POST", "/portal/bulk/take", bulk.take, _BUYER, _PLACE, bulk.BODY_BYTES_MAX),
    Page("GET", "/portal/bulk/orders", bulk.orders, _BUYER, _PLACE),
    Page("POST", "/portal/bulk/orders", bulk.confirm, _BUYER, _PLACE, slow=True),
    Page("GET", "/portal/orders", order_list.orders, _BUYER, _VIEW),
    Page("GET", "/portal/orders/-/export", order_list.export, _BUYER, _VIEW, slow=True),
    Page("GET", "/portal/orders/{trx}", orders.order, _BUYER, _VIEW),
    Page("GET", "/portal/orders/{trx}/live", orders.live, _BUYER, _VIEW),
    Page("POST", "/portal/orders/{trx}/confirm", checkout.confirm, _BUYER, _PLACE),
    Page("POST", "/portal/orders/{trx}/reopen", checkout.reopen, _BUYER, _PLACE),
    Page("POST", "/portal/orders/{trx}/again", checkout.again, _BUYER, _PLACE),
    Page("GET", "/portal/orders/{trx}/cancel", orders.cancel_page, _BUYER, _PLACE),
    Page("POST", "/portal/orders/{trx}/cancel", orders.cancel, _BUYER, _PLACE, slow=True),
    Page("GET", "/portal/orders/{trx}/links", links.links, _BUYER, _VIEW),
    Page(
        "POST",
        "/portal/orders/{trx}/links",
        links.set_pin,
        _BUYER,
        _PLACE,
        asks="Everybody who has a link can then see its code.",
        sure="Remove PIN",
        asks_if=("remove", "yes"),
    ),
    Page("POST", "/portal/orders/{trx}/links/show", links.ask, _BUYER, _CODES),
    Page("POST", "/portal/orders/{trx}/links/file", links.download, _BUYER, _CODES, slow=True),
    Page("GET", "/portal/orders/{trx}/codes", codes.show, _BUYER, _CODES),
    Page("POST", "/portal/orders/{trx}/codes", codes.ask, _BUYER, _CODES),
    Page("POST", "/portal/orders/{trx}/download", codes.download, _BUYER, _CODES, slow=True),
    Page("GET", "/portal/alerts", balances.alerts, _BUYER, Right.WALLET_VIEW),
    Page("POST", "/portal/alerts", balances.set_alert, _BUYER, _PLACE),
    Page("GET", "/portal/balances", balances.balances, _BUYER, _WALLET),
    Page("GET", "/portal/balances/{currency}", balances.statement, _BUYER, _WALLET),
    Page("GET", "/portal/balances/{currency}/statement.csv", balances.download, _BUYER, _WALLET, slow=True),
    Page("GET", "/portal/keys", keys.keys, _BUYER, _KEYS),
    Page("GET", "/portal/keys/new", keys.new_key, _BUYER, _KEYS),
    Page("POST", "/portal/keys", keys.add, _BUYER, _KEYS),
    Page("GET", "/portal/keys/{key}", keys.key, _BUYER, _KEYS),
    Page("POST", "/portal/keys/{key}/rotate", keys.rotate, _BUYER, _KEYS),
    Page(
        "POST",
        "/portal/keys/{key}/revoke",
        keys.revoke,
        _BUYER,
        _KEYS,
        asks="Whatever uses this key stops working at once. That can't be undone.",
        sure="Revoke key",
    ),
    Page(
        "POST",
        "/portal/keys/{key}/keep",
        keys.keep,
        _BUYER,
        _KEYS,
        asks="You answer for this key, and for the keys made with it. They may do again what they were made for.",
        sure="Keep key",
    ),
    Page("POST", "/portal/keys/{key}/alone", keys.set_alone, _BUYER, _KEYS),
    Page("POST", "/portal/guide-key", guide.with_key, _BUYER, _KEYS),
    Page("GET", "/portal/sandbox", sandbox.page, _BUYER, _KEYS),
    Page("POST", "/portal/sandbox/top-up", sandbox.top_up, _BUYER, _KEYS),
    Page("POST", "/portal/sandbox/advance", sandbox.advance, _BUYER, _KEYS),
    Page(
        "POST",
        "/portal/sandbox/reset",
        sandbox.reset,
        _BUYER,
        _KEYS,
        asks="The sandbox's clock goes back to the present.",
        sure="Reset clock",
    ),
    Page("GET", "/portal/requests", requests.requests, _BUYER, _KEYS),
    Page("GET", "/portal/requests/{number}", requests.request, _BUYER, _KEYS),
    Page("GET", "/portal/webhooks", webhooks.webhooks, _BUYER, _HOOKS),
    Page("GET", "/portal/webhooks/new", webhooks.new_webhook, _BUYER, _HOOKS),
    Page("POST", "/portal/webhooks", webhooks.add, _BUYER, _HOOKS),
    Page("GET", "/portal/webhooks/{webhook}", webhooks.webhook, _BUYER, _HOOKS),
    Page("GET", "/portal/webhooks/{webhook}/edit", webhooks.edit, _BUYER, _HOOKS),
    Page("POST", "/portal/webhooks/{webhook}", webhooks.change, _BUYER, _HOOKS),
    Page(
        "POST",
        "/portal/webhooks/{webhook}/remove",
        webhooks.remove,
        _BUYER,
        _HOOKS,
        asks="The endpoint and its log are removed. Nothing is sent there any more.",
        sure="Remove endpoint",
    ),
    Page("POST", "/portal/webhooks/{webhook}/rotate", webhooks.rotate, _BUYER, _HOOKS),
    Page("POST", "/portal/webhooks/{webhook}/test", webhooks.ping, _BUYER, _HOOKS),
    Page("POST", "/portal/webhooks/{webhook}/recover", webhooks.recover, _BUYER, _HOOKS),
    Page("POST", "/portal/webhooks/{webhook}/replay/{event}", webhooks.replay, _BUYER, _HOOKS),
)
_TEAM, _STAFF = Right.TEAM_MANAGE, Right.STAFF_MANAGE
_ASK, _ORDERS = Right.ORDERS_VIEW, Right.ORDERS_APPROVE

PEOPLE: Final[tuple[Page, ...]] = (
    Page("GET", "/forgotten", mailed.forgotten_page, _PUBLIC),
    Page("POST", "/forgotten", mailed.forgotten, _PUBLIC),
    Page("GET", "/reset/{token}", mailed.RESET.page, _PUBLIC),
    Page("POST", "/reset/{token}", mailed.RESET.choose, _PUBLIC),
    Page("GET", "/invitation/{token}", mailed.INVITATION.page, _PUBLIC),
    Page("POST", "/invitation/{token}", mailed.INVITATION.choose, _PUBLIC),
    Page("GET", "/account", account.account, _ANY),
    Page("POST", "/account", account.change_profile, _ANY),
    Page("GET", "/account/security", security.security, _ANY),
    Page("POST", "/account/password", security.change_password, _ANY),
    Page("GET", "/account/app", security.app_page, _ANY),
    Page("POST", "/account/app", security.confirm_app, _ANY),
    Page("GET", "/account/app/remove", security.remove_app_page, _ANY),
    Page("POST", "/account/app/remove", security.remove_app, _ANY),
    Page("GET", "/account/codes", security.codes_page, _ANY),
    Page("POST", "/account/codes", security.new_codes, _ANY),
    Page("POST", "/account/passkeys/options", security.passkey_options, _ANY),
    Page("POST", "/account/passkeys", security.add_passkey, _ANY),
    Page("GET", "/account/passkeys/{passkey}/remove", security.remove_passkey_page, _ANY),
    Page("POST", "/account/passkeys/{passkey}/remove", security.remove_passkey, _ANY),
    Page("GET", "/account/sessions", account.signed_in, _ANY),
    Page("POST", "/account/sessions/end", account.end_others, _ANY),
    Page("POST", "/account/sessions/{session}/end", account.end_session, _ANY),
    Page("GET", "/portal/team", TEAM.page, _BUYER, _TEAM),
    Page("POST", "/portal/team", TEAM.invite, _BUYER, _TEAM),
    Page("POST", "/portal/team/rules", TEAM.set_policy, _BUYER, _TEAM),
    Page("GET", "/portal/team/{person}", TEAM.person, _BUYER, _TEAM),
    Page("POST", "/portal/team/{person}/invite", TEAM.invite_again, _BUYER, _TEAM),
    Page("POST", "/portal/team/{person}/password", TEAM.send_password_link, _BUYER, _TEAM),
    Page("POST", "/portal/team/{person}/role", TEAM.set_role, _BUYER, _TEAM),
    Page(
        "POST",
        "/portal/team/{person}/deactivate",
        TEAM.deactivate,
        _BUYER,
        _TEAM,
        asks="This person is signed out and can't sign in any more. You can activate the account again.",
        sure="Deactivate account",
    ),
    Page("POST", "/portal/team/{person}/activate", TEAM.activate, _BUYER, _TEAM),
    Page(
        "POST",
        "/portal/team/{person}/second-factor",
        TEAM.reset_second_factor,
        _BUYER,
        _TEAM,
        asks="This person can then sign in with the password alone, and has to set up a second factor again.",
        sure="Reset second factor",
    ),
    Page("GET", "/portal/approvals", approvals.orders, _BUYER, _ASK),
    Page("POST", "/portal/approvals/{approval}/approve", approvals.approve_order, _BUYER, _ORDERS),
    Page("POST", "/portal/approvals/{approval}/reject", approvals.reject_order, _BUYER, _ORDERS),
    Page("POST", "/portal/approvals/{approval}/withdraw", approvals.withdraw_order, _BUYER, _ASK),
    Page("POST", "/portal/approvals/-/people/{person}", approvals.confirm_person, _BUYER, _ORDERS),
    Page("POST", "/portal/approvals/-/rule", approvals.confirm_rule, _BUYER, _ORDERS),
    Page("GET", "/console/staff", STAFF.page, _OPERATOR, _STAFF),
    Page("POST", "/console/staff", STAFF.invite, _OPERATOR, _STAFF),
    Page("GET", "/console/staff/{person}", STAFF.person, _OPERATOR, _STAFF),
    Page("POST", "/console/staff/{person}/invite", STAFF.invite_again, _OPERATOR, _STAFF),
    Page("POST", "/console/staff/{person}/password", STAFF.send_password_link, _OPERATOR, _STAFF),
    Page("POST", "/console/staff/{person}/role", STAFF.set_role, _OPERATOR, _STAFF),
    Page(
        "POST",
        "/console/staff/{person}/deactivate",
        STAFF.deactivate,
        _OPERATOR,
        _STAFF,
        asks="This person is signed out and can't sign in any more. You can activate the account again.",
        sure="Deactivate account",
    ),
    Page("POST", "/console/staff/{person}/activate", STAFF.activate, _OPERATOR, _STAFF),
    Page(
        "POST",
        "/console/staff/{person}/second-factor",
        STAFF.reset_second_factor,
        _OPERATOR,
        _STAFF,
        asks="This person can then sign in with the password alone, and has to set up a second factor again.",
        sure="Reset second factor",
    ),
)

SIGN_IN: Final[tuple[Page, ...]] = (
    Page("GET", "/", sign_in.start, _PUBLIC),
    Page("GET", "/sign-in", sign_in.sign_in_page, _PUBLIC),
    Page("POST", "/sign-in", sign_in.sign_in, _PUBLIC),
    Page("GET", "/sign-in/second-factor", sign_in.second_factor_page, _PUBLIC),
    Page("POST", "/sign-in/second-factor", sign_in.second_factor, _PUBLIC),
    Page("POST", "/sign-in/passkey/options", sign_in.passkey_options, _PUBLIC),
    Page("POST", "/sign-in/passkey", sign_in.passkey, _PUBLIC),
    Page("POST", "/sign-out", sign_in.sign_out, _PUBLIC),
    Page("GET", "/docs", guide.guide, _PUBLIC),
    Page("GET", "/docs/search", guide.search, _PUBLIC),
    Page("GET", "/docs/{page}", guide.guide, _PUBLIC),
    Page("GET", "/docs/errors/{page}", guide.guide, _PUBLIC),
    Page("GET", "/docs/objects/{page}", guide.guide, _PUBLIC),
    Page("GET", "/docs/reference/{page}", guide.guide, _PUBLIC),
)


RECIPIENT: Final[tuple[Page, ...]] = (
    Page("GET", "/r/{token}", link.voucher, Audience.LINK),
    Page("POST", "/r/{token}", link.reveal, Audience.LINK),
    Page("GET", "/logo/{name}", link.logo, Audience.LINK),
)
PAGES: Final[tuple[Page, ...]] = SIGN_IN + SET_UP + PEOPLE + RECIPIENT + BUYER + CONSOLE

VALUE_CHARS_MAX: Final = 200

_find: Final = Router((page.method, page.path, page) for page in PAGES).match


def match(path: str) -> tuple[dict[str, Page], dict[str, str], str] | None:
    """The pages at this path by method, its parameters by name, and the path as the table writes it."""
    found = _find(path)
    if found is None or any(len(value) > VALUE_CHARS_MAX for value in found.values):
        return None
    return found.methods, dict(zip(names(found.path), found.values, strict=True)), found.path
