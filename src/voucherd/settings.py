"""Settings: one frozen object, the only reader of the environment. Flags > environment > file > default."""

from __future__ import annotations

import difflib
import os
import re
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from email.utils import formataddr, parseaddr
from pathlib import Path
from typing import Annotated, Any, Final, get_type_hints

from voucherd import setting_values as kinds
from voucherd.setting_values import Network, Reader

PREFIX: Final = "VOUCHERD_"
DAY_S: Final = 86_400
OTLP: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"

# Not settings of the service: where the file is, what the test suite reads, and what the clients read.
_OTHER_VARIABLES: Final = (PREFIX + "CONFIG", PREFIX + "TEST_", PREFIX + "URL", PREFIX + "KEY")
_URL_PASSWORD: Final = re.compile(r"(\b[a-z][a-z0-9+]*://[^:/?#@\s]*:)[^\s]*(?=@)")
_QUERY_PASSWORD: Final = re.compile(r"(\b(?:ssl)?password=)[^&\s'\"]+")


class SettingsError(ValueError):
    """A setting is wrong; the message is one line that names it."""


def without_passwords(text: str) -> str:
    """The text with the passwords of database URLs in it taken out."""
    return _QUERY_PASSWORD.sub(r"\1***", _URL_PASSWORD.sub(r"\1***", text))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Settings:
    """Everything about this process that an operator may choose."""

    database_url: Annotated[str | None, kinds.database_url] = None  # None: the embedded server in `data`.
    migration_url: Annotated[str | None, kinds.database_url] = (
        None  # Of the tables' owner; None: database_url.
    )
    data: Annotated[Path, kinds.path] = Path(".voucherd")
    master_key_file: Annotated[Path, kinds.path] = Path()  # Default: master.key in `data`.
    master_key: Annotated[str | None, kinds.secret] = None  # The key itself, instead of a file.
    master_key_command: Annotated[
        tuple[str, ...], kinds.command
    ] = ()  # What prints the key, instead of a file.
    host: Annotated[str, kinds.text] = "127.0.0.1"
    port: Annotated[int, kinds.whole(0, 65_535)] = 8080  # 0: any free one.
    public_url: Annotated[str, kinds.public_url] = ""  # Default: http:// and the host and port.
    operator_name: Annotated[str, kinds.shop_name] = "voucherd"  # On pages and letters.
    operator_country: Annotated[str, kinds.country] = "NL"
    fx_url: Annotated[str | None, kinds.feed_url] = None  # None: rates are imported by hand.
    fx_age_s_max: Annotated[float, kinds.seconds(0, 366 * DAY_S)] = 7.0 * DAY_S  # 0: of any age.
    margin_min_bp: Annotated[int, kinds.whole(-10_000, 10_000)] = 0  # Of the cost; -10000: sell at any loss.
    confirm_wait_s: Annotated[float, kinds.seconds(0, 3600)] = 25.0
    resolve_limit_s: Annotated[float, kinds.seconds(0.001, 3600)] = 30.0
    answer_limit_s: Annotated[float, kinds.seconds(0.1, 3600)] = (
        15.0  # Of calls and pages that wait for no order.
    )
    batch_limit_s: Annotated[float, kinds.seconds(0.1, 3600)] = (
        4.0  # Of a batch whose database does not answer.
    )
    confirmation_window_s: Annotated[float, kinds.seconds(0.001, 366 * DAY_S)] = 86_400.0
    delivery_window_s: Annotated[float, kinds.seconds(0.001, 366 * DAY_S)] = 259_200.0
    transaction_s_max: Annotated[float, kinds.seconds(0.1, 3600)] = (
        2.0  # Of a batch of sales; its locks end with it.
    )
    pool_size: Annotated[int, kinds.whole(2, 1000)] = 10
    database_wait_s: Annotated[float, kinds.seconds(0, 366 * DAY_S)] = (
        60.0  # At the start, for one that is away.
    )
    log_level: Annotated[str, kinds.one_of("debug", "info", "warning", "error", "critical")] = "info"
    log_format: Annotated[str, kinds.one_of("auto", "json", "plain")] = "auto"
    access_log: Annotated[str, kinds.one_of("off", "sampled", "full")] = "sampled"
    traces_url: Annotated[str | None, kinds.public_url] = None  # Of an OTLP/HTTP collector; None: no traces.
    trusted_proxies: Annotated[tuple[Network, ...], kinds.networks] = ()
    connections_max: Annotated[int, kinds.whole(1, 1_000_000)] = 20_000  # Of clients, in one process.
    connections_of_address_max: Annotated[int, kinds.whole(1, 1_000_000)] = 2_000
    strangers_per_minute_max: Annotated[int, kinds.whole(1, 1_000_000_000)] = 300  # Of an address.
    waiting_calls_max: Annotated[int, kinds.whole(1, 1_000_000)] = 10_000
    body_bytes_max: Annotated[int, kinds.whole(1024, 64 * 1024 * 1024)] = 262_144
    body_bytes_held_max: Annotated[int, kinds.whole(1024, 2**40)] = 256 * 1024 * 1024  # In one process.
    body_bytes_held_of_address_max: Annotated[int, kinds.whole(1024, 2**40)] = 96 * 1024 * 1024
    metrics_token: Annotated[str | None, kinds.token] = (
        None  # Who brings it sees /metrics; None: nobody does.
    )
    worker_listen: Annotated[str, kinds.listen] = (
        "127.0.0.1:8081"  # Of `worker`: health and metrics; off: nowhere.
    )
    webhook_networks: Annotated[tuple[Network, ...], kinds.networks] = ()  # Beside the public internet.
    mail_folder: Annotated[Path, kinds.path] = Path()  # Default: mail in `data`.
    smtp_url: Annotated[str | None, kinds.smtp_url] = None  # None: mail stays in its folder.
    mail_from: Annotated[str, kinds.sender] = "voucherd <no-reply@localhost>"
    operator_second_factor: Annotated[bool, kinds.yes_or_no] = True  # The operator's people must have one.
    processes: Annotated[int, kinds.whole(1, 256)] = 1  # Of `serve`; each uses one core.
    backup_folder: Annotated[Path, kinds.path] = Path()  # Default: backups in `data`. Of the embedded server.
    backup_hour: Annotated[int, kinds.whole(0, 23)] = 2  # UTC.
    backup_keep: Annotated[int, kinds.whole(0, 1000)] = (
        7  # Backups; 0: none is taken, and no log is archived.
    )
    archive_folder: Annotated[Path, kinds.path] = Path()  # Default: archive in `data`.
    archive_months: Annotated[int, kinds.whole(2, 1200)] = 13  # Whole months that stay in the tables.
    replica_url: Annotated[str | None, kinds.database_url] = None  # Of a standby for lists and reports.
    replica_lag_s_max: Annotated[float, kinds.seconds(0.1, DAY_S)] = 5.0  # One further behind is not asked.
    warnings: tuple[str, ...] = ()  # What the start should say once; never a reason to stop.

    def __post_init__(self) -> None:
        # Five defaults depend on other settings; a frozen object can only be completed this way.
        if self.master_key_file == Path():
            object.__setattr__(self, "master_key_file", self.data / "master.key")
        if self.mail_folder == Path():
            object.__setattr__(self, "mail_folder", self.data / "mail")
        if self.backup_folder == Path():
            object.__setattr__(self, "backup_folder", self.data / "backups")
        if self.archive_folder == Path():
            object.__setattr__(self, "archive_folder", self.data / "archive")
        if not self.public_url:
            object.__setattr__(self, "public_url", _address(self.host, self.port))

    @classmethod
    def load(
        cls, flags: Mapping[str, object] | None = None, env: Mapping[str, str] | None = None
    ) -> Settings:
        """The settings of this start; refuses the first wrong one by name. A flag of None was not given."""
        env = os.environ if env is None else env
        given = {name: value for name, value in (flags or {}).items() if value is not None}
        unknown_flags = given.keys() - _READERS.keys()
        assert not unknown_flags, f"flags that are no settings: {unknown_flags}"
        values = _read_all({f"--{name.replace('_', '-')}": (name, value) for name, value in given.items()})
        # An empty variable is one that was not given, as compose files write it.
        said = {variable: (name, env[variable]) for variable, name in _VARIABLES.items() if env.get(variable)}
        if env.get(OTLP):
            # The name that other programs know it by; ours is stronger.
            said = {OTLP: ("traces_url", env[OTLP])} | said
        values = _read_all(said) | values
        path, named = _file_path(env, values)
        content = _file_content(path, named=named)
        known = {f"{path.name}: {name}": (name, content[name]) for name in content if name in _READERS}
        values = _read_all(known) | values
        _refuse_two_keys(values, path.name, content)
        return cls(**values, warnings=(*_unknown_variables(env), *_unknown_names(path.name, content)))

    def listening_on(self, port: int) -> Settings:
        """The same settings for the port that was really taken (of a start with port 0)."""
        derived = self.public_url == _address(self.host, self.port)
        public_url = _address(self.host, port) if derived else self.public_url
        return replace(self, port=port, public_url=public_url)

    def changed(self, chosen: Mapping[str, str]) -> tuple[Settings, list[str]]:
        """The same settings with those of `RUNNING` that are chosen here, and a line for each that can't be read."""
        values: dict[str, Any] = {}
        refused = []
        for name in RUNNING & chosen.keys():
            try:
                values[name] = read(name, chosen[name])
            except SettingsError as wrong:
                # Another version of the program may have stored it: what this one was started with holds.
                refused.append(str(wrong))
        return replace(self, **values), refused

    @property
    def sender(self) -> str:
        """Who letters are from: the shop, unless the sender has a name of its own."""
        name, address = parseaddr(self.mail_from)
        return formataddr((self.operator_name, address)) if name in ("", "voucherd") else self.mail_from

    def environment(self) -> dict[str, str]:
        """The variables that make another process load the same settings."""
        values = {name: getattr(self, name) for name in _READERS}
        if self.master_key is not None or self.master_key_command:
            del values["master_key_file"]
        values["master_key_command"] = shlex.join(self.master_key_command) or None
        return {
            PREFIX + name.upper(): ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            for name, value in values.items()
            if value is not None
        }

    def told(self, name: str) -> str:
        """A setting's value for a page: of a secret only whether there is one, of an address no password."""
        value = getattr(self, name)
        if name in _SECRET:
            return "set" if value else ""
        return without_passwords(written(value))

    def __repr__(self) -> str:
        pairs = ", ".join(f"{item.name}={self._shown(item.name)}" for item in fields(self))
        return without_passwords(f"Settings({pairs})")

    def _shown(self, name: str) -> str:
        value = getattr(self, name)
        return "***" if name in _SECRET and value else repr(value)


_READERS: Final[dict[str, Reader]] = {
    name: hint.__metadata__[0]
    for name, hint in get_type_hints(Settings, include_extras=True).items()
    if hasattr(hint, "__metadata__")
}
_SECRET: Final = frozenset({"master_key", "master_key_command", "metrics_token"})
"""A command may hold a password of its own."""
_KEY_SOURCES: Final = ("master_key_file", "master_key", "master_key_command")
_VARIABLES: Final[dict[str, str]] = {PREFIX + name.upper(): name for name in _READERS}


RUNNING: Final = frozenset(
    {
        "operator_name",
        "operator_country",
        "operator_second_factor",
        "mail_from",
        "fx_url",
        "fx_age_s_max",
        "margin_min_bp",
        "confirmation_window_s",
        "delivery_window_s",
        "archive_months",
    }
)
"""Settings that may change while the program runs; all others are read once, at the start."""
OPTIONAL: Final = frozenset({"fx_url"})
"""Those among them that may be none."""


def read(name: str, text: str) -> Any:
    """The value of a setting in a text, by the same rule as in the environment; refused in words that name it."""
    if not text and name in OPTIONAL:
        return None
    return _read_all({name: (name, text)})[name]


def written(value: object) -> str:
    """A setting's value as the environment would write it; empty for none."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return "" if value is None else f"{value:.12g}" if isinstance(value, float) else str(value)


def _refuse_two_keys(values: Mapping[str, Any], file: str, content: Mapping[str, Any]) -> None:
    """Refuse a master key that is to come from two places, or that is written among other settings."""
    if "master_key" in content:
        raise SettingsError(f"{file}: master_key: put the key into a file of its own, or the environment")
    given = [PREFIX + name.upper() for name in _KEY_SOURCES if values.get(name)]
    if len(given) > 1:
        raise SettingsError(f"{' and '.join(given)}: the master key must come from one place")


def _read_all(sources: Mapping[str, tuple[str, object]]) -> dict[str, Any]:
    """From {where it was said: (name, raw value)} to {name: value}."""
    values = {}
    for source, (name, raw) in sources.items():
        try:
            values[name] = _READERS[name](raw)
        except ValueError as wrong:
            shown = "what it is" if name in _SECRET else without_passwords(repr(raw))
            raise SettingsError(f"{source}: must be {wrong}, not {shown}") from None
    return values


def _file_path(env: Mapping[str, str], values: Mapping[str, Any]) -> tuple[Path, bool]:
    """Where the file is, and whether someone said so (then it must be there)."""
    if named := env.get(PREFIX + "CONFIG"):
        return Path(named).expanduser(), True
    return Path(values.get("data", Path(".voucherd"))) / "voucherd.toml", False


def _file_content(path: Path, *, named: bool) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        if named:
            raise SettingsError(f"{PREFIX}CONFIG: no such file: {path}") from None
        return {}
    except OSError as error:
        raise SettingsError(f"{path}: can't be read: {error.strerror}") from None
    except ValueError as error:
        raise SettingsError(f"{path}: not TOML: {' '.join(str(error).split())}") from None


def _unknown_variables(env: Mapping[str, str]) -> list[str]:
    """A warning for each variable that looks like ours and is not, with the nearest one that is."""
    names = [name for name in sorted(env) if name.startswith(PREFIX) and name not in _VARIABLES]
    return [
        f"{name}: no such setting{_nearest(name, _VARIABLES)}"
        for name in names
        if not name.startswith(_OTHER_VARIABLES)
    ]


def _unknown_names(file_name: str, content: Mapping[str, object]) -> list[str]:
    unknown = [name for name in content if name not in _READERS]
    return [f"{file_name}: {name}: no such setting{_nearest(name, _READERS)}" for name in unknown]


def _nearest(name: str, known: Mapping[str, object]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
