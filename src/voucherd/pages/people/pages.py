"""The pages about people, on one screen."""

from __future__ import annotations

from typing import Final

from voucherd.pages.page import Audience, Page
from voucherd.pages.people import account, approvals, links
from voucherd.pages.people.team import STAFF, TEAM
from voucherd.people.roles import Right

_PUBLIC, _ANY = Audience.PUBLIC, Audience.SIGNED_IN
_BUYER, _HOUSE = Audience.COMPANY, Audience.OPERATOR
_TEAM, _STAFF = Right.TEAM_MANAGE, Right.STAFF_MANAGE
_ASK, _ORDERS = Right.ORDERS_VIEW, Right.ORDERS_APPROVE

PAGES: Final[tuple[Page, ...]] = (
    Page("GET", "/forgotten", links.forgotten_page, _PUBLIC),
    Page("POST", "/forgotten", links.forgotten, _PUBLIC),
    Page("GET", "/reset/{token}", links.RESET.page, _PUBLIC),
    Page("POST", "/reset/{token}", links.RESET.choose, _PUBLIC),
    Page("GET", "/invitation/{token}", links.INVITATION.page, _PUBLIC),
    Page("POST", "/invitation/{token}", links.INVITATION.choose, _PUBLIC),
    Page("GET", "/account", account.account, _ANY),
    Page("POST", "/account/password", account.change_password, _ANY),
    Page("GET", "/account/app", account.app_page, _ANY),
    Page("POST", "/account/app", account.confirm_app, _ANY),
    Page("POST", "/account/app/remove", account.remove_app, _ANY),
    Page("POST", "/account/codes", account.new_codes, _ANY),
    Page("POST", "/account/passkeys/options", account.passkey_options, _ANY),
    Page("POST", "/account/passkeys", account.add_passkey, _ANY),
    Page("POST", "/account/passkeys/{passkey}/remove", account.remove_passkey, _ANY),
    Page("POST", "/account/sessions/end", account.end_others, _ANY),
    Page("POST", "/account/sessions/{session}/end", account.end_session, _ANY),
    Page("GET", "/portal/team", TEAM.page, _BUYER, _TEAM),
    Page("POST", "/portal/team", TEAM.invite, _BUYER, _TEAM),
    Page("POST", "/portal/team/rules", TEAM.set_policy, _BUYER, _TEAM),
    Page("POST", "/portal/team/{person}/invite", TEAM.invite_again, _BUYER, _TEAM),
    Page("POST", "/portal/team/{person}/role", TEAM.set_role, _BUYER, _TEAM),
    Page("POST", "/portal/team/{person}/deactivate", TEAM.deactivate, _BUYER, _TEAM),
    Page("POST", "/portal/team/{person}/activate", TEAM.activate, _BUYER, _TEAM),
    Page("POST", "/portal/team/{person}/second-factor", TEAM.reset_second_factor, _BUYER, _TEAM),
    Page("GET", "/portal/approvals", approvals.orders, _BUYER, _ASK),
    Page("POST", "/portal/approvals/{approval}/approve", approvals.approve_order, _BUYER, _ORDERS),
    Page("POST", "/portal/approvals/{approval}/reject", approvals.reject_order, _BUYER, _ORDERS),
    Page("POST", "/portal/approvals/{approval}/withdraw", approvals.withdraw_order, _BUYER, _ASK),
    Page("GET", "/console/staff", STAFF.page, _HOUSE, _STAFF),
    Page("POST", "/console/staff", STAFF.invite, _HOUSE, _STAFF),
    Page("POST", "/console/staff/{person}/invite", STAFF.invite_again, _HOUSE, _STAFF),
    Page("POST", "/console/staff/{person}/role", STAFF.set_role, _HOUSE, _STAFF),
    Page("POST", "/console/staff/{person}/deactivate", STAFF.deactivate, _HOUSE, _STAFF),
    Page("POST", "/console/staff/{person}/activate", STAFF.activate, _HOUSE, _STAFF),
    Page("POST", "/console/staff/{person}/second-factor", STAFF.reset_second_factor, _HOUSE, _STAFF),
)
