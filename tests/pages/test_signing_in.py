"""Signing in and out, sessions and their limits, forms of strangers, and pages for what went wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pages.people import HTML, someone
from tests.shop import Shop, open_shop
from voucherd.db import Pool, transaction
from voucherd.http import HttpError, Request
from voucherd.pages.forms import FormReader
from voucherd.people import sessions, user_store
from voucherd.people.users import UserDraft, hash_password

PASSWORD = " a password with spaces "


async def person(shop: Shop, email: str, company_id: int | None, role: str) -> None:
    """Someone who can sign in."""
    async with transaction(shop.pool) as tx:
        await user_store.add_user(tx, UserDraft(email, company_id, role), await hash_password(PASSWORD, []))


async def attempt(shop: Shop, email: str, password: str, **fields: str) -> tuple[int, str, str]:
    """Fill in the form: status, where it leads, and the session's cookie."""
    form = await shop.client.get("/sign-in", headers=HTML)
    visitor = form.headers["set-cookie"].partition(";")[0]
    csrf = re.search('name="csrf" value="([0-9a-f]+)"', form.text)
    assert csrf is not None
    data = {"csrf": csrf[1], "email": email, "password": password, **fields}
    shop.client.cookies.clear()
    answer = await shop.client.post("/sign-in", data=data, headers={**HTML, "cookie": visitor})
    shop.client.cookies.clear()
    given = [c for c in answer.headers.get_list("set-cookie") if c.startswith("voucherd=")]
    return answer.status_code, answer.headers.get("location", ""), given[0] if given else ""


async def test_a_person_signs_in_and_out(shop: Shop) -> None:
    """OP-90: a session begins with the password, ends with sign-out, and its cookie is the browser's alone."""
    company = await shop.company()
    await person(shop, "ann@acme.example", company.id, "owner")
    await person(shop, "op@house.example", None, "admin")
    status, location, cookie = await attempt(shop, " Ann@ACME.example ", PASSWORD)
    assert (status, location) == (303, "/portal")
    assert "HttpOnly; SameSite=Lax" in cookie
    assert "Path=/" in cookie
    headers = {**HTML, "cookie": cookie.partition(";")[0]}
    page = await shop.client.get("/portal", headers=headers)
    assert page.status_code == 200
    assert "1\u202f000.00" in page.text
    assert (await shop.client.get("/", headers=headers)).headers["location"] == "/portal"
    csrf = re.search('name="csrf" value="([0-9a-f]+)"', page.text)
    assert csrf is not None
    out = await shop.client.post("/sign-out", data={"csrf": csrf[1]}, headers=headers)
    assert (out.status_code, out.headers["location"]) == (303, "/sign-in")
    assert (await shop.client.get("/portal", headers=headers)).status_code == 303
    for email, password in (("ann@acme.example", PASSWORD.strip()), ("nobody@acme.example", PASSWORD)):
        assert (await attempt(shop, email, password))[0] == 422
    status, location, _ = await attempt(shop, "op@house.example", PASSWORD, next="//evil.example")
    assert (status, location) == (303, "/console")
    await shop.set_company(company, active=False)
    assert (await attempt(shop, "ann@acme.example", PASSWORD))[0] == 422


async def test_a_session_ends_with_time_the_company_and_the_person(shop: Shop) -> None:
    """OP-90: 12 idle hours, 14 days in all, an inactive company, an inactive person; a pending one opens nothing."""
    company = await shop.company()
    ends = (
        "UPDATE session SET seen_at = now() - interval '12 hours 1 second'",
        "UPDATE session SET expires_at = now() - interval '1 second', created_at = now() - interval '14 days'",
        "UPDATE app_user SET active = false",
        "UPDATE session SET pending = true",
        "UPDATE company SET active = false",
    )
    for end in ends:
        owner = await someone(shop, "owner", company)
        assert (await owner.get("/portal")).status_code == 200
        await shop.pool.execute(end)
        assert (await owner.get("/portal")).status_code == 303, end
    await shop.set_company(company, active=True)
    one, two = await someone(shop, "owner", company), await someone(shop, "viewer", company)
    async with transaction(shop.pool) as tx:
        await sessions.end_others(tx, one.user_id, sessions.key_of(one.token))
        await sessions.end_others(tx, two.user_id, None)
        await sessions.sweep(tx)
    assert (await one.get("/portal")).status_code == 200
    assert (await two.get("/portal")).status_code == 303
    assert await shop.pool.fetchval("SELECT count(*) FROM session WHERE expires_at < now()") == 0


async def test_forms_of_other_sites_are_refused(shop: Shop) -> None:
    """OP-90: by their origin, by what the browser says of their site, and by the secret that they can't know."""
    owner = await someone(shop, "owner", await shop.company())
    data = {"csrf": owner.csrf}

    async def status(**headers: str) -> int:
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return (
            await shop.client.post("/account/sessions/end", data=data, headers=owner.headers | more)
        ).status_code

    assert await status(origin="http://evil.example") == 403
    assert await status(origin="null", sec_fetch_site="cross-site") == 403
    assert await status(origin="http://shop", sec_fetch_site="same-site") == 403
    data["csrf"] = "0" * 64
    assert await status(origin="http://shop") == 403
    data["csrf"] = owner.csrf
    assert await status(origin="http://shop", sec_fetch_site="same-origin") == 303


async def test_what_goes_wrong_is_a_page_for_people_and_a_line_for_programs(shop: Shop) -> None:
    """OP-91: 404, 405, 413 and 503 as pages with the same headers as any page."""
    missing = await shop.client.get("/no/such/page", headers=HTML)
    assert (missing.status_code, missing.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "frame-ancestors 'none'" in missing.headers["content-security-policy"]
    assert (await shop.client.get("/no/such/page")).text == "not found"
    wrong = await shop.client.post("/portal", headers=HTML)
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET, HEAD")
    large = await shop.client.post("/sign-in", content=b"x" * 65_537, headers=HTML)
    assert large.status_code == 413
    assert (await shop.client.post("/sign-in", content=b"{}", headers=HTML)).status_code == 415
    owner = await someone(shop, "owner", await shop.company())
    house = shop.program.services
    window, house.storefront = house.storefront, None  # type: ignore[assignment]
    broken = await owner.get("/portal/catalogue")
    assert (broken.status_code, "Something went wrong" in broken.text) == (500, True)
    assert "Traceback" not in broken.text
    house.storefront = window
    await house.pool.close()
    away = await owner.get("/portal")
    assert (away.status_code, away.headers["retry-after"]) == (503, "1")


async def test_pages_work_below_a_path_and_over_tls(pool: Pool, database_url: str, tmp_path: Path) -> None:
    """OP-90, OP-91: behind a proxy under a path links lead there, and over TLS the cookie is the host's alone."""
    url = "https://codes.example/shop"
    async with open_shop(pool, database_url, tmp_path, with_worker=False, public_url=url) as shop:
        page = await shop.client.get("/sign-in", headers=HTML)
        assert page.headers["set-cookie"].startswith("__Host-visitor=")
        assert "; Secure" in page.headers["set-cookie"]
        assert page.headers["strict-transport-security"].startswith("max-age=31536000")
        assert 'action="/shop/sign-in"' in page.text
        assert 'href="/shop/static/site.' in page.text
        assert (await shop.client.get("/portal")).headers["location"] == "/shop/sign-in?next=/portal"


def test_forms_are_read_whole_or_refused() -> None:
    """OP-91: fields and files of both kinds of forms; what no browser sends is refused, never an error of ours."""

    def read(kind: str, body: bytes) -> tuple[list[tuple[str, str]], dict[str, tuple[str, bytes]]]:
        request = Request("POST", "/x", b"", {b"content-type": kind.encode()}, b"", "", "r")
        for size in (len(body), 1):
            reader = FormReader(request, None)
            for at in range(0, len(body), size):
                reader.write(body[at : at + size])
            form, files = reader.finish()
        pairs = [(name, value) for name, values in form._values.items() for value in values]
        return pairs, {name: (file.name, file.content) for name, file in files.items()}

    plain, parts = "application/x-www-form-urlencoded", "multipart/form-data; boundary=line"
    assert read(plain, b"a=1&b=%E2%82%AC+&a=2") == ([("a", "1"), ("a", "2"), ("b", "€ ")], {})
    body = (
        b'--line\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
        b'--line\r\nContent-Disposition: form-data; name="f"; filename="x.csv"\r\n\r\n\x00\xff,2\r\n'
        b'--line\r\nContent-Disposition: form-data; name="g"; filename=""\r\n\r\n\r\n--line--\r\n'
    )
    assert read(parts, body) == ([("a", "1")], {"f": ("x.csv", b"\x00\xff,2")})
    for kind, bad in (
        (plain, b"a=%00"),
        (plain, b"a=%ff"),
        (plain, b"a=\xff"),
        (plain, b"&".join([b"a=1"] * 1_001)),
        (parts, b"nothing of the kind"),
        (parts, body.replace(b"\r\n\r\n1\r\n", b"\r\n\r\n\xff\r\n")),
        ("multipart/form-data", body),
        ("application/json", b"{}"),
    ):
        with pytest.raises(HttpError):
            read(kind, bad)
