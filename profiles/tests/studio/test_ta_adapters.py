"""The real work behind the adapters: charts, texts from a model, PDF/A, and speech as MP3."""

import asyncio
import io
import json
from collections.abc import Iterator
from datetime import date
from typing import Any

import httpx2
import pikepdf
import pypdfium2
import pytest

from trunkline.errors import ProfileError
from trunkline_profiles.studio.handlers import charts
from trunkline_profiles.studio.handlers.adapters import adapters
from trunkline_profiles.studio.handlers.chapter import Book, Chapter, decode, encode
from trunkline_profiles.studio.handlers.charts import Person
from trunkline_profiles.studio.handlers.mp3 import measure
from trunkline_profiles.studio.handlers.pdf import TypstRenderer
from trunkline_profiles.studio.handlers.problems import BadOrder, StudioProblem
from trunkline_profiles.studio.handlers.retries import WAITS, call_again
from trunkline_profiles.studio.handlers.speech import BIT_RATE, EspeakSpeaker
from trunkline_profiles.studio.handlers.text import Assignment, ModelWriter
from trunkline_profiles.studio.stubs.model import Model, TextModel
from trunkline_profiles.studio.tasks import unserved

ANN = Person("Ann", "1984-05-17T08:30:00+02:00")
BOB = Person("Bob", "1981-11-02")
ALL = sorted(charts.SYSTEMS)
CHAPTER = Chapter(
    "Portraits", ["Two people meet. It rains, and nobody minds.", "They agree to meet again."]
)
NEVER = bool


# Base data.


def test_the_base_data_has_the_charts_of_both_people(  # the almanac's values of these days
) -> None:
    """TA-73: Sun and Moon in every system of the order."""
    data = charts.base_data(ANN, BOB, ALL)
    assert [one.name for one in data.charts] == ["Ann", "Bob"]
    ann, bob = (one.facts for one in data.charts)
    assert (ann["western"]["sun"], bob["western"]["sun"]) == ("Taurus", "Scorpio")
    # The sidereal zodiac is 23 to 24 degrees behind.
    assert (ann["vedic"]["sun"], bob["vedic"]["sun"]) == ("Taurus", "Libra")
    assert ann["numerology"]["path"] == "8"
    assert ann["human_design"]["sun"].startswith("gate 8, line")
    assert charts.base_data(ANN, BOB, ALL) == data


@pytest.mark.parametrize(
    ("moment", "sign"),
    [
        ("2000-03-20T08:00", "Aries"),
        ("2000-03-20T07:00", "Pisces"),
        ("2024-12-21T09:30", "Capricorn"),
        ("2024-12-21T09:00", "Sagittarius"),
    ],
)
def test_the_sun_changes_its_sign_at_equinox_and_solstice(moment: str, sign: str) -> None:
    """TA-73: known to the hour."""
    facts = charts.chart(Person("x", moment), ["western"]).facts
    assert facts["western"]["sun"] == sign


def test_an_order_that_cannot_be_computed_is_final() -> None:
    """TA-73: another attempt would find the same."""
    with pytest.raises(BadOrder, match="tarot"):
        charts.chart(ANN, ["tarot"])
    with pytest.raises(BadOrder, match="soon"):
        charts.chart(Person("x", "soon"), ["western"])


# Texts.


@pytest.fixture
def model() -> Iterator[TextModel]:
    with TextModel(Model(requests_per_minute=100)) as running:
        yield running


def write(model: TextModel, key: str, title: str = "Portraits") -> Chapter:
    writer = ModelWriter(f"{model.url}/v1")
    lines = charts.as_text(charts.base_data(ANN, BOB, ALL))

    async def call() -> Chapter:
        async with httpx2.AsyncClient() as client:
            return await writer.write(client, Assignment(title, lines), key)

    return asyncio.run(call())


def test_a_text_comes_from_the_model(model: TextModel) -> None:
    """TA-28, TA-70: deterministic here, about both people, with real paragraphs."""
    chapter = write(model, "a")
    assert chapter.title == "Portraits"
    assert len(chapter.paragraphs) == 3
    assert "Ann" in " ".join(chapter.paragraphs)
    assert write(model, "b") == chapter
    assert write(model, "c", "Hunger").paragraphs != chapter.paragraphs
    assert decode(encode(chapter)) == chapter
    assert json.loads(encode(chapter))["title"] == "Portraits"


def test_a_repeated_key_is_not_paid_for_twice(model: TextModel) -> None:
    """TA-57: a retry after a lost answer returns the first one."""
    first = write(model, "task-1")
    assert write(model, "task-1") == first
    assert model.keys == {"task-1": 2}
    assert (model.paid, model.account().calls) == (1, 1)


@pytest.mark.parametrize(
    "body",
    [
        b"no json",
        b"{}",
        b'{"choices": []}',
        b'{"choices": [{"message": {"content": "words"}}]}',
        b'{"choices": [{"message": {"content": "{\\"paragraphs\\": [\\" \\"]}"}}]}',
    ],
)
def test_an_answer_that_is_no_chapter_is_a_problem(body: bytes) -> None:
    """TA-28: another attempt may get a better one."""
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, content=body))

    async def call() -> None:
        async with httpx2.AsyncClient(transport=transport) as client:
            await ModelWriter("http://model").write(client, Assignment("x", "y"), "k")

    with pytest.raises(StudioProblem):
        asyncio.run(call())


@pytest.mark.parametrize(
    ("failures", "waits", "calls"), [(0, [], 1), (1, [5.0], 2), (2, [5.0, 10.0], 3)]
)
def test_a_broken_connection_is_tried_again_within_the_attempt(
    failures: int, waits: list[float], calls: int
) -> None:
    """TA-25: at most three calls, after 5 and 10 seconds."""
    done, slept = _calls(failures, httpx2.ConnectError("away"))
    assert (done, slept) == (calls, waits)


def test_the_third_broken_connection_ends_the_attempt() -> None:
    """TA-25: and so does every error that is not the network's, at once."""
    with pytest.raises(httpx2.ConnectError):
        _calls(3, httpx2.ConnectError("away"))
    with pytest.raises(StudioProblem):
        _calls(1, StudioProblem("the model answered 500"))
    assert WAITS == (5.0, 10.0)


def _calls(failures: int, error: Exception) -> tuple[int, list[float]]:
    done = 0
    slept: list[float] = []

    async def call() -> None:
        nonlocal done
        done += 1
        if done <= failures:
            raise error

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    asyncio.run(call_again(call, sleep=sleep))
    return done, slept


# Pages.


def test_the_pdf_is_an_archive(tmp_path: Any) -> None:
    """TA-29: PDF/A-2b with a colour profile, its identification, embedded fonts and no scripts."""
    pages = TypstRenderer().render(Book("Portraits", "Ann and Bob", date(2026, 11, 19), [CHAPTER]))
    with pikepdf.open(io.BytesIO(pages)) as pdf:
        (intent,) = pdf.Root.OutputIntents
        assert str(intent.S) == "/GTS_PDFA1"
        # The signature of an ICC profile.
        assert intent.DestOutputProfile.read_bytes()[36:40] == b"acsp"
        with pdf.open_metadata() as metadata:
            assert (metadata["pdfaid:part"], metadata["pdfaid:conformance"]) == ("2", "B")
            assert metadata["dc:title"] == "Portraits"
        fonts = [
            font.DescendantFonts[0].FontDescriptor
            for page in pdf.pages
            for font in page.Resources.Font.values()
        ]
        assert fonts
        assert all({"/FontFile2", "/FontFile3"} & set(font.keys()) for font in fonts)
        names = {str(key) for thing in pdf.objects for key in _keys(thing)}
        assert names.isdisjoint({"/JavaScript", "/JS", "/OpenAction", "/AA", "/EmbeddedFiles"})
        assert not pdf.is_encrypted
    document = pypdfium2.PdfDocument(pages)
    text = " ".join(page.get_textpage().get_text_range() for page in document)
    assert "Two people meet." in text.replace("\r\n", " ")


def _keys(thing: Any) -> Any:
    return thing.keys() if isinstance(thing, (pikepdf.Dictionary, pikepdf.Stream)) else ()


def test_the_same_book_has_the_same_bytes() -> None:
    """TA-50, TA-55: a retry uploads equal content."""
    book = Book("Full", "Ann and Bob", date(2026, 11, 19), [CHAPTER, CHAPTER])
    first = TypstRenderer().render(book)
    assert TypstRenderer().render(book) == first
    assert len(pypdfium2.PdfDocument(first)) > 2


def test_what_people_write_is_text_not_markup() -> None:
    """TA-29: nothing in a name or a chapter is executed, and unknown letters do not fail a file."""
    hostile = '#read("/etc/passwd") *bold* <a> $x$ \\ // [ ] "quoted" \U0001f600 \u4e2d'
    pages = TypstRenderer().render(
        Book(hostile, hostile, date(2026, 1, 1), [Chapter(hostile, [hostile, "Zoë Čapek Ωmega"])])
    )
    text = pypdfium2.PdfDocument(pages)[0].get_textpage().get_text_range()
    assert '#read("/etc/passwd") *bold*' in text.replace("\u201c", '"').replace("\u201d", '"')
    assert "root:" not in text
    assert "Zoë Čapek Ωmega" in text


# Speech.


def test_speech_is_an_mp3_of_128_kilobits_with_its_duration() -> None:
    """TA-30, TA-49: read from the frames; there is no WAV."""
    sound = EspeakSpeaker().speak(CHAPTER, NEVER)
    measured = measure(sound)
    assert measured.bit_rates == {BIT_RATE} == {128}
    assert 3 < measured.duration < 20
    assert measured.duration == pytest.approx(len(sound) * 8 / 128_000, rel=0.01)
    longer = measure(EspeakSpeaker().speak(Chapter("x", CHAPTER.paragraphs * 4), NEVER))
    assert longer.duration > 2 * measured.duration
    assert b"RIFF" not in sound


def test_speech_stops_when_the_task_is_cancelled() -> None:
    """TA-21: a worker abandons the task."""
    with pytest.raises(StudioProblem, match="stopped"):
        EspeakSpeaker().speak(CHAPTER, lambda: True)
    # The engine works on after that.
    assert measure(EspeakSpeaker().speak(CHAPTER, NEVER)).frames > 10


def test_an_unknown_voice_is_a_problem() -> None:
    """TA-30."""
    with pytest.raises(StudioProblem, match="martian"):
        EspeakSpeaker("martian").speak(CHAPTER, NEVER)


@pytest.mark.parametrize("damage", ["cut", "noise", "empty", "wav"])
def test_anything_but_whole_frames_is_no_mp3(damage: str) -> None:
    """TA-30: a duration is never guessed."""
    sound = EspeakSpeaker().speak(Chapter("Hello", []), NEVER)
    broken = {
        "cut": sound[:-7],
        "noise": sound + b"noise",
        "empty": b"",
        "wav": b"RIFF" + bytes(100),
    }[damage]
    with pytest.raises(StudioProblem):
        measure(broken)


# Configuration.


class OwnWriter:
    """An adapter of a user."""

    tokens = 7

    def __init__(self, environment: Any) -> None:
        self.environment = environment


def test_adapters_are_chosen_by_configuration() -> None:
    """TA-76: built in, or your own as module:factory."""
    found = adapters({"TRUNKLINE_STUDIO_TEXT": f"{__name__}:OwnWriter"})
    assert type(found.writer).__name__ == "OwnWriter"
    assert isinstance(found.renderer, TypstRenderer)
    assert isinstance(found.speaker, EspeakSpeaker)
    assert unserved(found) == {}
    found = adapters({})
    assert found.writer is None
    assert unserved(found) == {"text_generation": "TRUNKLINE_STUDIO_MODEL_URL is not set"}
    model = adapters({"TRUNKLINE_STUDIO_MODEL_URL": "http://x", "TRUNKLINE_STUDIO_MODEL_KEY": "s"})
    assert isinstance(model.writer, ModelWriter)
    assert "'s'" not in repr(model.writer)


@pytest.mark.parametrize("name", ["typst2", "no.such.module:x", f"{__name__}:Missing"])
def test_an_unknown_adapter_is_refused_with_its_variable(name: str) -> None:
    """TA-76."""
    with pytest.raises(ProfileError, match="TRUNKLINE_STUDIO_PDF"):
        adapters({"TRUNKLINE_STUDIO_PDF": name})
