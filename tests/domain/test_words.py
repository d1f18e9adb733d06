"""The words of pages and letters: the list of all texts, the catalogues, and how dates and numbers are written."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.pofile import read_po

from tools import texts
from voucherd.money import Money
from voucherd.words import LANGUAGES, SOURCE, Words, catalogue, pick, zone_names, zones

OTHERS = [tag for tag in LANGUAGES if tag != SOURCE]
TAGS = re.compile(r"<[^>]*>")
PLACES = re.compile(r"\{[a-z_]*\}")


def read(language: str) -> Catalog:
    """The catalogue of a language, or the list."""
    file = texts.LIST if language == SOURCE else texts.FOLDER / f"{language}.po"
    with file.open("rb") as lines:
        return read_po(lines)


def pairs(message: Message) -> list[tuple[str, str]]:
    """The English words of a message, each beside its translation."""
    if isinstance(message.id, str):
        return [(message.id, str(message.string))]
    return list(zip(message.id, message.string or ("", ""), strict=True))


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_list_of_all_texts_is_current(language: str) -> None:
    """OP-171: the list and every catalogue hold what the templates and the code say; `make texts` writes them."""
    made = texts.listed() if language == SOURCE else texts.translated(language)
    assert len([message for message in made if message.id]) > 40
    file = texts.LIST if language == SOURCE else texts.FOLDER / f"{language}.po"
    assert file.read_text(encoding="utf-8") == texts.written(made, language), "run make texts"


@pytest.mark.parametrize("language", OTHERS)
def test_every_text_is_translated_with_its_values_and_tags(language: str) -> None:
    """OP-171: a language is spoken wholly, with the same values and the same tags in its sentences."""
    missing = []
    for message in read(language):
        for english, words in pairs(message) if message.id else []:
            if not words:
                missing.append(english)
                continue
            assert sorted(PLACES.findall(words)) == sorted(PLACES.findall(english)), english
            assert sorted(TAGS.findall(words)) == sorted(TAGS.findall(english)), english
            assert words == words.strip(), english
            assert english.endswith((".", "?")) == words.endswith((".", "?")), english
    assert missing == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_can_break_out_of_an_attribute(language: str) -> None:
    """Texts of templates are not escaped: a quote or a sign of HTML in one would be taken as such."""
    for message in read(language):
        for both in pairs(message) if message.id else []:
            for words in both:
                bare = TAGS.sub("", words)
                assert '"' not in bare, words
                assert not re.search(r"[<>]|&(?!amp;|lt;|gt;|nbsp;)", bare), words


def test_the_language_is_the_browsers_unless_another_is_asked_for() -> None:
    """OP-57, OP-171: Accept-Language decides, ?lang= before it, English after it; nonsense is nobody's language."""
    assert pick("", "de-AT,de;q=0.9,en;q=0.8") == "de"
    assert pick("", "en;q=0.5, nl;q=0.7") == "nl"
    assert pick("", "pt-BR, it;q=0.9") == "en"
    assert pick("", "fr;q=0, es;q=0.1") == "es"
    assert pick("es", "fr") == "es"
    assert pick("xx", "fr") == "fr"
    assert pick("", ";;,q=,-" * 1000) == "en"


def test_money_dates_and_waits_are_written_as_people_write_them() -> None:
    """OP-57: whole amounts without zeros, letters apart from their number, days in full."""
    day = datetime(2028, 11, 3, tzinfo=UTC)
    written = {tag: (Words(tag).money(Money(5000, "EUR")), Words(tag).long_day(day)) for tag in LANGUAGES}
    assert written == {
        "en": ("€50", "3 November 2028"),
        "nl": ("€\u00a050", "3 november 2028"),
        "de": ("50\u00a0€", "3. November 2028"),
        "fr": ("50\u00a0€", "3 novembre 2028"),
        "es": ("50\u00a0€", "3 de noviembre de 2028"),
    }
    assert Words("en").money(Money(123456, "NOK")) == "NOK\u00a01,234.56"
    assert Words("de").money(Money(3000, "JPY")) == "3.000\u00a0¥"
    assert Words("en").money(Money(2500, "KWD")) == "KWD\u00a02.500"
    assert Words("en").until(day + timedelta(minutes=14, seconds=1), day) == "in 15 minutes"
    assert Words("nl").until(day, day) == "over 1 minuut"
    assert (Words("fr").place("nl"), Words("en").place("ww"), Words("en").place("benelux")) == (
        "Pays-Bas",
        "",
        "BENELUX",
    )


def test_numbers_and_days_are_written_in_the_readers_language_and_zone() -> None:
    """OP-171, OP-172: one function groups digits; the day of a moment is the day where the reader is."""
    late = datetime(2028, 11, 3, 23, 30, tzinfo=UTC)
    price = Money(566_835, "EUR")
    written = {
        tag: (Words(tag).amount(price), Words(tag, "Europe/Amsterdam").moment(late)) for tag in LANGUAGES
    }
    assert written == {
        "en": ("5\u202f668.35\u00a0EUR", "4 Nov 2028, 00:30"),
        "nl": ("5.668,35\u00a0EUR", "4 nov 2028, 00:30"),
        "de": ("5.668,35\u00a0EUR", "4. Nov. 2028, 00:30"),
        "fr": ("5\u202f668,35\u00a0EUR", "4 nov. 2028, 00:30"),
        "es": ("5.668,35\u00a0EUR", "4 nov 2028, 00:30"),
    }
    assert Words().figure(Money(-5, "EUR")) == "−0.05"
    assert Words("de").figure(Money(1_234_567, "JPY")) == "1.234.567"
    assert Words().day(date(2028, 11, 3)) == "3 Nov 2028"
    assert Words("en", "America/New_York").moment_and_zone(late) == "3 Nov 2028, 19:30 (America/New_York)"


def test_a_day_begins_at_the_readers_own_midnight() -> None:
    """OP-172: also on the days on which clocks change."""
    here = Words("en", "Europe/Amsterdam")
    assert here.midnight(date(2028, 11, 3)) == datetime(2028, 11, 2, 23, tzinfo=UTC)
    assert here.midnight(date(2028, 7, 1)) == datetime(2028, 6, 30, 22, tzinfo=UTC)
    changing = date(2028, 3, 26)
    assert here.midnight(changing + timedelta(days=1)) - here.midnight(changing) == timedelta(hours=23)
    assert Words().midnight(changing) == datetime(2028, 3, 26, tzinfo=UTC)
    assert here.today(datetime(2028, 11, 3, 23, 30, tzinfo=UTC)) == date(2028, 11, 4)


def test_zones_are_those_of_the_machine() -> None:
    """OP-172: people choose among places; a name that is no zone is none."""
    assert {"UTC", "Europe/Amsterdam", "America/New_York"} <= set(zone_names()) <= zones()
    assert not {"Etc/GMT+5", "../../etc/passwd", "CET"} & set(zone_names())


def test_counts_have_words_of_their_own() -> None:
    """OP-171: one, many, and French, which counts none as one."""
    for language, count, form in (("fr", 0, 0), ("de", 0, 1), ("de", 1, 0), ("nl", 2, 1)):
        assert catalogue(language).form(count) == form
    assert Words().plural("{count} code", "{count} codes", 1) == "1 code"
    assert Words("de").plural("{count} such thing", "{count} such things", 1_200) == "1.200 such things"
