"""Which route a path leads to."""

from __future__ import annotations

from voucherd.router import Router, names


def mapped(*paths: str) -> Router[str]:
    """A router of these paths below /api/1.03: a method, a space and a path."""
    return Router((method, f"/api/1.03/{path}", path) for method, path in (text.split(" ") for text in paths))


def found(routes: Router[str], path: str) -> tuple[str, tuple[str, ...]] | None:
    """The path of the route, and its parameters."""
    match = routes.match(f"/api/1.03/{path}")
    if match is None:
        return None
    (target,) = set(match.methods.values())
    assert match.path == f"/api/1.03/{target}"
    assert len(names(match.path)) == len(match.values)
    return target, match.values


def test_a_literal_segment_wins_over_a_parameter() -> None:
    """OP-04: `product/changes` is not the product whose slug is "changes", whichever stands first in the table."""
    for paths in (
        ("GET product/{slug}", "GET product/changes"),
        ("GET product/changes", "GET product/{slug}"),
    ):
        routes = mapped(*paths)
        assert found(routes, "product/changes") == ("product/changes", ())
        assert found(routes, "product/gift-10") == ("product/{slug}", ("gift-10",))


def test_parameters_may_stand_anywhere() -> None:
    """OP-04: in the middle, at the end, and more than one; the leftmost literal decides."""
    routes = mapped(
        "GET order",
        "GET order/{trx}",
        "GET order/{trx}/line",
        "GET order/{trx}/line/{tag}",
        "PATCH order/confirm/{trx}",
        "GET {anything}/{at}/{all}",
    )
    assert found(routes, "order") == ("order", ())
    assert found(routes, "order/TRX1") == ("order/{trx}", ("TRX1",))
    assert found(routes, "order/TRX1/line") == ("order/{trx}/line", ("TRX1",))
    assert found(routes, "order/TRX1/line/TAG-1") == ("order/{trx}/line/{tag}", ("TRX1", "TAG-1"))
    assert found(routes, "order/confirm/TRX1") == ("order/confirm/{trx}", ("TRX1",))
    assert found(routes, "order/confirm/line") == ("order/confirm/{trx}", ("line",))
    assert found(routes, "order/confirm") == ("order/{trx}", ("confirm",))
    assert found(routes, "basket/TRX1/line") == ("{anything}/{at}/{all}", ("basket", "TRX1", "line"))


def test_no_segment_is_empty_and_no_path_goes_on() -> None:
    """OP-04: an empty segment is neither a literal nor a parameter."""
    routes = mapped("GET order/{trx}", "GET order/{trx}/line")
    for path in (
        "",
        "order",
        "order/",
        "order//line",
        "order/TRX1/",
        "order/TRX1/line/",
        "order/TRX1/line/2",
    ):
        assert found(routes, path) is None, path
    for path in (
        "",
        "/",
        "/api",
        "/api/",
        "//api/1.03/order/TRX1",
        "/API/1.03/order/TRX1",
        "/api//order/TRX1",
    ):
        assert routes.match(path) is None, path


def test_the_start_is_a_path_of_its_own() -> None:
    """The page at "/" is found where the table has one, and nowhere else."""
    assert mapped("GET order").match("/") is None
    start = Router([("GET", "/", "start"), ("GET", "/sign-in", "door"), ("GET", "/r/{token}", "link")])
    assert [start.match(path) is not None for path in ("/", "/sign-in", "/r/x", "/r/", "/r", "")] == [
        *(True, True, True),
        *(False, False, False),
    ]
