"""What the operator does to the own shop: begin it by the link, name it, and choose settings while it runs."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from voucherd import trail
from voucherd.actors import Actor, ActorKind
from voucherd.catalogue import logos
from voucherd.db import Tx
from voucherd.keys.callers import Forbidden
from voucherd.people import approvers, members, sessions, user_store
from voucherd.people.roles import Right, rights_of
from voucherd.people.sign_in import Origin, SignedIn, actor_of
from voucherd.people.users import UserDraft
from voucherd.settings import RUNNING, SettingsError, read, written
from voucherd.setup import links, store
from voucherd.setup.running import HIDDEN, LOGO, ONLY_EUROS


class SetUpAlready(Exception):
    """The operator has somebody: who wants in is invited by them."""


class LinkOver(Exception):
    """The set-up link was used, replaced, or is too old."""


class BadSetting(ValueError):
    """A setting can't be like this; names it, and says what it must be."""

    def __init__(self, name: str, rule: str) -> None:
        super().__init__(f"{name}: {rule}")
        self.name = name
        self.rule = rule


class Beginning(Struct, frozen=True):
    """What the first page of the set-up asks for; the password is a hash already."""

    name: str
    country: str
    email: str
    password_hash: str
    logo: bytes | None = None


async def open_link(tx: Tx, actor: Actor, root: bytes, *, renew: bool = False) -> str:
    """The token of the set-up link; refused when the operator has somebody. With `renew` those before are void."""
    await members.lock(tx, None)
    if not await links.is_empty(tx):
        raise SetUpAlready
    token, new = await links.open_link(tx, root, renew=renew)
    if new:
        await trail.record(
            tx, actor, "setup.link", "set-up link", {"hours": links.LIFE.total_seconds() // 3600}
        )
    return token


async def begin(tx: Tx, root: bytes, token: str, wish: Beginning, origin: Origin) -> SignedIn:
    """The operator's first person, signed in, and the shop's name: by the link, once."""
    await members.lock(tx, None)
    if not await links.is_empty(tx):
        raise SetUpAlready
    if not await links.use(tx, root, token):
        raise LinkOver
    profile = _checked({"operator_name": wish.name, "operator_country": wish.country})
    user = await user_store.add_user(tx, UserDraft(wish.email, None, "admin"), wish.password_hash)
    await approvers.count_at_once(tx, user.id)
    actor = actor_of(user, origin)
    await store.keep(tx, profile)
    await trail.record(tx, actor, "setup.begin", f"user {user.email}", {"role": user.role, **profile})
    if wish.logo is not None:
        await set_logo(tx, actor, wish.logo)
    return SignedIn(user, await sessions.begin(tx, user.id, origin.browser))


async def choose(tx: Tx, actor: Actor, chosen: Mapping[str, str | None]) -> None:
    """Let these settings hold from now on; None goes back to what the program was started with."""
    await _refuse_others(tx, actor)
    checked = _checked(chosen)
    before = await store.stored(tx)
    changes = {name: value for name, value in checked.items() if before.get(name) != value}
    if not changes:
        return
    await store.keep(tx, changes)
    detail = {name: "as started" if value is None else value for name, value in changes.items()}
    await trail.record(tx, actor, "setting.set", "settings", detail)


async def set_logo(tx: Tx, actor: Actor, content: bytes) -> str:
    """Give the shop this logo; its name. Refused if it is no picture, or too large."""
    await _refuse_others(tx, actor)
    name = logos.name_of(content)
    await store.set_logo(tx, name, content)
    await store.keep(tx, {LOGO: name})
    await trail.record(tx, actor, "setting.set-logo", "settings", {"logo": name, "bytes": len(content)})
    return name


async def remove_logo(tx: Tx, actor: Actor) -> None:
    """Take the shop's logo away."""
    await _refuse_others(tx, actor)
    await store.remove_logo(tx)
    await store.keep(tx, {LOGO: None})
    await trail.record(tx, actor, "setting.remove-logo", "settings")


async def sell_in_euros_only(tx: Tx, actor: Actor) -> None:
    """Say that the shop needs no exchange rates: the checklist asks for none."""
    await store.keep(tx, {ONLY_EUROS: "yes"})
    await trail.record(tx, actor, "checklist.only-euros", "checklist")


async def hide_checklist(tx: Tx, actor: Actor, *, hidden: bool) -> None:
    """Show the checklist of a new shop no more, or again."""
    await store.keep(tx, {HIDDEN: "yes" if hidden else None})
    await trail.record(tx, actor, "checklist.hide" if hidden else "checklist.show", "checklist")


async def _refuse_others(tx: Tx, actor: Actor) -> None:
    """Refuse people who may not choose settings, as their role is now."""
    if actor.kind is ActorKind.COMMAND:
        return
    role = await user_store.role_now(tx, actor.id or 0) if actor.kind is ActorKind.OPERATOR else ""
    if Right.SETTINGS_MANAGE not in rights_of(role, of_company=False):
        raise Forbidden(Right.SETTINGS_MANAGE.value)


def _checked(chosen: Mapping[str, str | None]) -> dict[str, str | None]:
    """The settings as they are stored; refused if one may not change, or breaks its rule."""
    checked: dict[str, str | None] = {}
    for name, text in chosen.items():
        if name not in RUNNING:
            raise BadSetting(name, "can't change while the program runs")
        if text is not None and name == "fx_url" and text.startswith("http:"):
            # Whoever may sign in here need not be at home on this machine.
            raise BadSetting(name, "must be an address that starts with https://")
        try:
            value = None if text is None else read(name, text)
        except SettingsError as wrong:
            raise BadSetting(name, str(wrong).partition(": ")[2]) from None
        checked[name] = None if text is None else written(value)
    return checked
