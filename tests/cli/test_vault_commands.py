"""`voucherd vault`: the keys, and replacing the master key."""

from __future__ import annotations

from tests.cli.terminal import Terminal, assert_refused, assert_wrong_usage


def test_the_master_key_is_replaced_and_everything_still_opens(terminal: Terminal) -> None:
    """OP-95: the old file stays for old backups; where the key is no file the new one is given."""
    terminal.json("company", "add", "Acme", "--country", "NL")
    hook = terminal.json("webhook", "add", "Acme", "https://acme.com/in")
    file = terminal.data / "master.key"
    first = file.read_text()

    before = terminal.json("vault", "status")
    answer = terminal.json("vault", "rotate", "--master")

    assert before["masterKey"]["generation"] == 1
    (key,) = before["keys"]
    assert (key["version"], key["standing"], key["codes"], key["texts"]) == (1, "seals", 0, 1)
    assert answer == {"generation": 2, "file": str(file), "oldKey": f"{file}.1"}
    assert (terminal.data / "master.key.1").read_text() == first != file.read_text()
    assert terminal.json("webhook", "show", hook["id"])["id"] == hook["id"]
    assert "number 2" in terminal.view("vault", "status")
    assert_refused(terminal.run("vault", "retire", "1"), "key 1 seals something")
    assert_refused(terminal.run("vault", "retire", "7"), "no key 7")
    assert_wrong_usage(terminal.run("vault", "rotate", "--new-key-file", "x"), "goes with --master")
    trail = terminal.json("trail", "list", "--action", "vault")
    assert [(row["action"], row["subject"]) for row in trail] == [("vault.rotate", "master key")]
    assert first.strip() not in str(trail)

    given = terminal.data / "given"
    given.write_text("ab" * 32)
    given.chmod(0o600)
    current = file.read_text().strip()
    file.unlink()
    elsewhere = {"VOUCHERD_MASTER_KEY": current}
    assert_refused(terminal.run("vault", "rotate", "--master", **elsewhere), "--new-key-file")
    said = terminal.run("vault", "rotate", "--master", "--new-key-file", str(given), "--json", **elsewhere)
    assert said.document == {"generation": 3, "file": None, "oldKey": None}
    assert_refused(terminal.run("vault", "status", **elsewhere), "not the one that sealed this database")
    assert terminal.run("vault", "status", VOUCHERD_MASTER_KEY="ab" * 32).code == 0
