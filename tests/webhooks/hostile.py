"""Addresses that must lead nowhere: every trick by which a URL was ever made to reach what it should not."""

from __future__ import annotations

from itertools import product

PRIVATE = (
    *("127.0.0.1", "127.1.2.3", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255"),  # noqa: S104
    *("100.64.0.1", "100.127.255.254", "169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.255"),
    *("192.0.0.1", "192.0.0.170", "192.0.2.1", "192.88.99.1", "192.168.0.1", "192.168.255.255", "198.18.0.1"),
    *("198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.250", "240.0.0.1"),
    *("255.255.255.255", "168.63.129.16", "192.31.196.1", "192.52.193.1", "192.175.48.1"),
)
PRIVATE_6 = (
    *("::", "::1", "::2", "::7f00:1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:8.8.8.8"),
    *(
        "::ffff:0:127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::8.8.8.8",
        "64:ff9b:1::7f00:1",
        "100::1",
        "100:0:0:1::1",
    ),
    *("2001::1", "2001:0:7f00:1::", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", "2001:1ff::1"),
    *(
        "2002:7f00:1::1",
        "2002:a00:1::",
        "2002:808:808::1",
        "2620:4f:8000::1",
        "3fff::1",
        "3ffe::1",
        "4000::1",
    ),
    *(
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254",
        "fdff::1",
        "fe80::1",
        "febf::1",
        "fec0::1",
        "ff02::1",
        "ff0e::1",
    ),
    *("::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::", "1000::1", "e000::1", "200::1"),
)
SPELLINGS = (
    *("127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0x7f.1", "0177.0.0.1", "017700000001"),
    *(
        "127.000.000.001",
        "127.0.0.1.",
        "0",
        "00.0.0.0",
        "0x0",
        "127.0.0.0x1",
        "0x7F.0x0.0x0.0x1",
        "0300.0250.0.1",
    ),
    *("3232235521", "169.254.43518", "0251.0376.0251.0376", "0xa9fea9fe", "2852039166", "10.1", "192.168.1"),
    *(
        "１２７.０.０.１",
        "①②⑦.⓪.⓪.①",
        "127。0。0。1",
        "127．0．0．1",
        "127.0.0.1%00",
        "127.0.0.1%2f",
        "%31%32%37.0.0.1",
    ),
    *(
        "[::1",
        "::1]",
        "[::1]]",
        "[[::1]]",
        "[::1%25lo]",
        "[fe80::1%25eth0]",
        "[::1%lo]",
        "[127.0.0.1]",
        "[::127.1]",
    ),
    *("[v1.::1]", "[0:0:0:0:0:0:0:1]", "[::0001]", "[0000::1]", "[::FFFF:7F00:1]", "[::ffff:127.0.0.1]"),
)
NAMES = (
    *(
        "localhost",
        "LOCALHOST",
        "localhost.",
        "a.localhost",
        "localhost.localdomain",
        "ip6-localhost",
        "loopback",
    ),
    *(
        "db",
        "postgres",
        "metadata",
        "metadata.google.internal",
        "instance-data.ec2.internal",
        "kubernetes.default.svc",
    ),
    *(
        "router.lan",
        "printer.local",
        "nas.home",
        "wiki.corp",
        "intranet",
        "x.intranet",
        "x.private",
        "a.test",
    ),
    *(
        "x.invalid",
        "shop.example",
        "1.0.0.127.in-addr.arpa",
        "abc.onion",
        "a..b.com",
        ".com",
        "-a.com",
        "a-.com",
    ),
    *(
        "a b.com",
        "a\tb.com",
        "a\nb.com",
        "a\\b.com",
        "a/b@c.com",
        "exa_mple!.com",
        "xn--.",
        "ｌocalhost",
        "ⓛocalhost",
    ),
    *("a" * 64 + ".com", "a." * 130 + "com", "*.example.com", "$(id).com", "`id`.com", "a;b.com", "a,b.com"),
)
WHOLE = (
    *(
        "",
        " ",
        "/",
        "//127.0.0.1/",
        "127.0.0.1",
        "https:",
        "https:/",
        "https://",
        "https:///",
        "https:///etc/passwd",
    ),
    *(
        "https:127.0.0.1",
        "https:/127.0.0.1/",
        "https://?",
        "https://#",
        "https://:443/",
        "https://@127.0.0.1/",
    ),
    *(
        "https://user@example.com/",
        "https://user:pass@example.com/",
        "https://:@example.com/",
        "https://a@b@127.0.0.1/",
    ),
    *(
        "https://example.com@127.0.0.1/",
        "https://example.com:443@127.0.0.1/",
        "https://127.0.0.1#@example.com/",
    ),
    *(
        "https://127.0.0.1\\@example.com/",
        "https://example.com\\@127.0.0.1/",
        "https:\\\\127.0.0.1\\",
        "\\\\127.0.0.1",
    ),
    *(
        "https://127.0.0.1?@example.com/",
        "https://127.0.0.1;@example.com/",
        "https://example.com%40127.0.0.1/",
    ),
    *(
        "https://example.com%00.evil.com/",
        "https://example.com%0d%0aHost:x/",
        "https://example.com/\r\nHost: x",
    ),
    *(
        "https://example.com/ HTTP/1.1\r\nX: y",
        "https://example.com/\x00",
        "https://example.com/\u2028",
        "https://exämple.com/",
    ),
    *(
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_INFO",
        "dict://127.0.0.1:11211/stat",
    ),
    *(
        "ldap://127.0.0.1/",
        "tftp://127.0.0.1/",
        "ws://127.0.0.1/",
        "wss://127.0.0.1/",
        "unix:///var/run/docker.sock",
    ),
    *(
        "http+unix://%2Fvar%2Frun%2Fdocker.sock/",
        "data:text/plain,hi",
        "javascript:alert(1)",
        "jar:https://127.0.0.1!/",
    ),
    *(
        "HTTPS://127.0.0.1/",
        "hTtPs://[::1]/",
        "https ://127.0.0.1/",
        " https://127.0.0.1/",
        "https://127.0.0.1 /",
    ),
    *("http://example.com/", "http://8.8.8.8/", "http://127.0.0.1/", "http://localhost/", "http://[::1]/"),
    *(
        f"https://hooks.voucherd.dev:{port}/"
        for port in (0, 1, 22, 25, 53, 80, 110, 445, 2375, 3306, 5432, 6379, 8080)
    ),
    *(
        f"https://hooks.voucherd.dev:{port}/"
        for port in (9200, 11211, 65535, 65536, 99999, "44a", "-1", "+443", "٤٤٣", "")
    ),
    *(f"https://8.8.8.8:{port}/" for port in (22, 25, 80, 6379)),
    "https://" + "a" * 2000 + ".com/",
    "https://hooks.voucherd.dev/#fragment",
)


def urls(port: int) -> list[str]:
    """All of them; where a port fits, the one that a listener of this machine has."""
    hosts = [*PRIVATE, *SPELLINGS, *NAMES, *(f"[{address}]" for address in PRIVATE_6)]
    plain = [f"https://{host}/" for host in hosts]
    aimed = [f"{scheme}://{host}:{port}/" for scheme, host in product(("https", "http"), hosts)]
    return [*plain, *aimed, *WHOLE]
