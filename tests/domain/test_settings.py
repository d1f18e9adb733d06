"""Settings: who wins, and what a wrong one says."""

from __future__ import annotations

import dataclasses
from ipaddress import ip_network
from pathlib import Path

import pytest

from voucherd.settings import Settings, SettingsError


def loaded(tmp_path: Path, **env: str) -> Settings:
    """The settings of a start with these variables, in a folder of its own."""
    return Settings.load(env={"VOUCHERD_DATA": str(tmp_path)} | env)


def test_without_anything_said_the_defaults_hold() -> None:
    """The command line's page promises these."""
    settings = Settings.load(env={})

    assert settings.database_url is None
    assert (settings.host, settings.port) == ("127.0.0.1", 8080)
    assert settings.public_url == "http://127.0.0.1:8080"
    assert settings.master_key_file == settings.data / "master.key" == Path(".voucherd/master.key")
    assert (settings.confirm_wait_s, settings.resolve_limit_s) == (25, 30)
    assert (settings.confirmation_window_s, settings.delivery_window_s) == (86_400, 259_200)
    assert (settings.body_bytes_max, settings.waiting_calls_max) == (262_144, 10_000)
    assert settings.warnings == ()


def test_flags_beat_the_environment_beats_the_file_beats_the_default(tmp_path: Path) -> None:
    """Flags > environment > file > default."""
    (tmp_path / "voucherd.toml").write_text('port = 1\nhost = "10.0.0.1"\noperator_country = "DE"\n')
    env = {"VOUCHERD_DATA": str(tmp_path), "VOUCHERD_PORT": "2", "VOUCHERD_HOST": "10.0.0.2"}

    settings = Settings.load({"port": 3, "host": None}, env)

    assert (settings.port, settings.host, settings.operator_country) == (3, "10.0.0.2", "DE")
    assert settings.confirm_wait_s == 25


def test_an_empty_variable_is_one_that_was_not_given(tmp_path: Path) -> None:
    """Compose files and make pass empty variables on."""
    settings = loaded(tmp_path, VOUCHERD_DATABASE_URL="", VOUCHERD_PORT="")

    assert settings.database_url is None
    assert settings.port == 8080


def test_seconds_may_be_fractions(tmp_path: Path) -> None:
    """Time limits are settings, so that a test need not wait a day."""
    assert loaded(tmp_path, VOUCHERD_CONFIRM_WAIT_S="0.25").confirm_wait_s == 0.25


def test_trusted_proxies_are_networks_or_addresses(tmp_path: Path) -> None:
    """A proxy is named by its address or by its network."""
    settings = loaded(tmp_path, VOUCHERD_TRUSTED_PROXIES="10.0.0.0/8, ::1")

    assert settings.trusted_proxies == (ip_network("10.0.0.0/8"), ip_network("::1/128"))


def test_a_port_that_was_picked_shows_in_the_public_address_unless_one_was_given(tmp_path: Path) -> None:
    """`--port 0` picks a free one; links must carry the real one."""
    assert loaded(tmp_path, VOUCHERD_PORT="0").listening_on(4711).public_url == "http://127.0.0.1:4711"
    public = loaded(tmp_path, VOUCHERD_PORT="0", VOUCHERD_PUBLIC_URL="https://shop.example.com/")
    assert public.listening_on(4711).public_url == "https://shop.example.com"
    assert loaded(tmp_path, VOUCHERD_HOST="::1").public_url == "http://[::1]:8080"


ADDRESS = "must be an address such as https://shop.example.com, without a query"
NETWORKS = "must be addresses or networks such as 10.0.0.0/8, with commas between"
MAIL = "must be smtp+starttls:// or smtps:// (smtp is for this machine only)"
MAIL_URL = "must be an address such as smtp+starttls://user:password@mail.example.com:587"
WRONG = [
    ("PORT", "x", "must be a whole number between 0 and 65535, not 'x'"),
    ("PORT", "65536", "must be a whole number between 0 and 65535, not '65536'"),
    ("PORT", "80.5", "must be a whole number between 0 and 65535, not '80.5'"),
    ("DATABASE_URL", "mysql://localhost/x", "must be a URL that starts with postgresql://, not 'mysql://localhost/x'"),
    ("HOST", " ", "must be a text, not ' '"),
    ("PUBLIC_URL", "shop.example.com", f"{ADDRESS}, not 'shop.example.com'"),
    ("PUBLIC_URL", "https://a.example/?q=1", f"{ADDRESS}, not 'https://a.example/?q=1'"),
    ("OPERATOR_COUNTRY", "NLD", "must be a country of two letters, such as NL, not 'NLD'"),
    ("CONFIRM_WAIT_S", "soon", "must be a number of seconds between 0 and 3600, not 'soon'"),
    ("CONFIRM_WAIT_S", "nan", "must be a number of seconds between 0 and 3600, not 'nan'"),
    ("RESOLVE_LIMIT_S", "0", "must be a number of seconds between 0.001 and 3600, not '0'"),
    ("CONFIRMATION_WINDOW_S", "-1", "must be a number of seconds between 0.001 and 31622400, not '-1'"),
    ("DELIVERY_WINDOW_S", "inf", "must be a number of seconds between 0.001 and 31622400, not 'inf'"),
    ("POOL_SIZE", "1", "must be a whole number between 2 and 1000, not '1'"),
    ("LOG_LEVEL", "loud", "must be one of debug, info, warning, error, critical, not 'loud'"),
    ("LOG_FORMAT", "xml", "must be one of auto, json, plain, not 'xml'"),
    ("TRUSTED_PROXIES", "10.0.0.1/8", f"{NETWORKS}, not '10.0.0.1/8'"),
    ("SMTP_URL", "smtp://mail.example.com", f"{MAIL}, not 'smtp://mail.example.com'"),
    ("SMTP_URL", "https://mail.example.com", f"{MAIL_URL}, not 'https://mail.example.com'"),
    ("SMTP_URL", "smtps://mail.example.com/x", f"{MAIL_URL}, not 'smtps://mail.example.com/x'"),
    ("SMTP_URL", "smtps://u:hunter2@mail.example.com/x", f"{MAIL_URL}, not 'smtps://u:***@mail.example.com/x'"),
    ("MAIL_FROM", "the shop", "must be a sender such as Shop <no-reply@shop.example.com>, not 'the shop'"),
    ("OPERATOR_SECOND_FACTOR", "maybe", "must be true or false, not 'maybe'"),
    ("WAITING_CALLS_MAX", "0", "must be a whole number between 1 and 1000000, not '0'"),
    ("BODY_BYTES_MAX", "1", "must be a whole number between 1024 and 67108864, not '1'"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "rule"), WRONG)
def test_a_wrong_value_stops_the_start_with_one_line_that_names_it(
    tmp_path: Path, name: str, value: str, rule: str
) -> None:
    """An operator reads one line and knows what to change."""
    with pytest.raises(SettingsError) as wrong:
        loaded(tmp_path, **{f"VOUCHERD_{name}": value})

    assert str(wrong.value) == f"VOUCHERD_{name}: {rule}"


def test_a_wrong_value_is_named_by_where_it_was_said(tmp_path: Path) -> None:
    """A flag and the file's line are named as they are written."""
    with pytest.raises(
        SettingsError, match=r"^--pool-size: must be a whole number between 2 and 1000, not 0$"
    ):
        Settings.load({"pool_size": 0}, {})
    (tmp_path / "voucherd.toml").write_text("port = true\n")
    with pytest.raises(SettingsError, match=r"^voucherd\.toml: port: must be a whole number .*, not True$"):
        loaded(tmp_path)


def test_a_file_that_is_named_must_be_there_and_be_toml(tmp_path: Path) -> None:
    """A file that was asked for and is not read would be a silent default."""
    with pytest.raises(SettingsError, match=r"^VOUCHERD_CONFIG: no such file: .*missing\.toml$"):
        loaded(tmp_path, VOUCHERD_CONFIG=str(tmp_path / "missing.toml"))
    (tmp_path / "broken.toml").write_text("port =\n\nhost")
    with pytest.raises(SettingsError, match=r"^.*broken\.toml: not TOML: .*$"):
        loaded(tmp_path, VOUCHERD_CONFIG=str(tmp_path / "broken.toml"))


def test_an_unknown_name_is_a_warning_with_the_nearest_one(tmp_path: Path) -> None:
    """A variable of a newer version must not keep an older one from starting."""
    (tmp_path / "voucherd.toml").write_text("prot = 1\n")

    settings = loaded(tmp_path, VOUCHERD_PROT="1", VOUCHERD_TEST_DATABASE_URL="x", VOUCHERD_KEY="y")

    assert settings.warnings == (
        "VOUCHERD_PROT: no such setting (did you mean VOUCHERD_PORT?)",
        "voucherd.toml: prot: no such setting (did you mean port?)",
    )


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://shop:hunter2@db/shop",
        "postgresql://shop:p@hunter2@db/shop",
        "postgresql://db/shop?user=shop&password=hunter2",
        "postgres://shop:hunter2@a:5432,b:5432/shop?target_session_attrs=primary",
    ],
)
def test_a_password_is_never_shown(tmp_path: Path, url: str) -> None:
    """Secrets never appear in what is printed of the settings."""
    settings = loaded(tmp_path, VOUCHERD_DATABASE_URL=url)

    assert settings.database_url == url
    assert "hunter2" not in repr(settings)
    assert "***" in repr(settings)


def test_mail_is_set_up_without_showing_its_password(tmp_path: Path) -> None:
    """OP-92: over TLS, or to this machine; a process that is started by this one gets the same."""
    url = "smtp+starttls://shop:hunter2@mail.example.com:587"
    settings = loaded(
        tmp_path,
        VOUCHERD_SMTP_URL=url,
        VOUCHERD_MAIL_FROM="The Shop <mail@shop.example>",
        VOUCHERD_OPERATOR_SECOND_FACTOR="off",
    )

    assert settings.smtp_url == url
    assert "hunter2" not in repr(settings)
    assert Settings.load(env=settings.environment()) == settings
    assert not settings.operator_second_factor
    assert loaded(tmp_path, VOUCHERD_SMTP_URL="smtp://localhost:2525").smtp_url == "smtp://localhost:2525"


def test_a_password_in_a_url_that_is_refused_is_not_shown_either(tmp_path: Path) -> None:
    """The line about a wrong URL ends up in logs."""
    with pytest.raises(SettingsError) as wrong:
        loaded(tmp_path, VOUCHERD_DATABASE_URL="mysql://shop:hunter2@db/shop")

    assert "hunter2" not in str(wrong.value)


def test_settings_never_change() -> None:
    """One frozen object."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings.load(env={}).port = 1  # type: ignore[misc]


def test_the_master_key_comes_from_one_place_and_is_shown_nowhere() -> None:
    """OP-95: file, environment or command; never two of them, and never in a file among other settings."""
    key = "ab" * 32
    chosen = Settings.load({}, {"VOUCHERD_MASTER_KEY": f" {key} "})
    asked = Settings.load({}, {"VOUCHERD_MASTER_KEY_COMMAND": "pass show 'my key'"})

    assert (chosen.master_key, asked.master_key_command) == (key, ("pass", "show", "my key"))
    assert key not in repr(chosen)
    assert "my key" not in repr(asked)
    # Processes that are started with these settings have the same source, and one only.
    for settings in (chosen, asked):
        child = Settings.load({}, settings.environment())
        assert (child.master_key, child.master_key_command) == (
            settings.master_key,
            settings.master_key_command,
        )
    for env in (
        {"VOUCHERD_MASTER_KEY": key, "VOUCHERD_MASTER_KEY_COMMAND": "true"},
        {"VOUCHERD_MASTER_KEY": key, "VOUCHERD_MASTER_KEY_FILE": "/k"},
    ):
        with pytest.raises(SettingsError, match="must come from one place") as refused:
            Settings.load({}, env)
        assert key not in str(refused.value)
    with pytest.raises(SettingsError, match="as a shell would read them") as refused:
        Settings.load({}, {"VOUCHERD_MASTER_KEY_COMMAND": f"echo '{key}"})
    assert key not in str(refused.value)


def test_the_master_key_is_not_a_line_among_other_settings(tmp_path: Path) -> None:
    """OP-95: a file of settings is copied, shown and checked in."""
    (tmp_path / "voucherd.toml").write_text(f'master_key = "{"ab" * 32}"')
    with pytest.raises(SettingsError, match="a file of its own") as refused:
        Settings.load({"data": str(tmp_path)}, {})
    assert "abab" not in str(refused.value)
