from html.parser import HTMLParser

import pytest

from bench.reporters.html import html_page, table_rows

HOSTILE = "<script>alert(1)</script>\" onload='x' {{ 7 * 7 }} [v1] \x1b[31m \udcff"


class Page(HTMLParser):
    """Collects what a browser would load or run, and the visible text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.handlers, self.words = [], [], [], []
        self.open = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.links += [value for name, value in attrs if name.split(":")[-1] in ("href", "src", "srcset")]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture
def page_of(draw_once):
    """Returns the function from a result to the text of its page."""
    return lambda result: html_page(result, draw_once(result))


@pytest.mark.parametrize(
    "name", ["host_bound", "device_bound", "interrupted", "no_step", "long_run", "real_training"]
)
def test_page_is_self_contained_and_needs_no_script(request, name, page_of):
    text = page_of(request.getfixturevalue(name))
    page = Page(text)
    assert all(link.startswith("#") for link in page.links)
    assert not {"script", "link", "iframe", "object", "embed", "img", "base"} & {tag for tag, _ in page.tags}
    assert page.handlers == []
    assert "http:" not in text and "https:" not in text and "@import" not in text
    assert "fetch(" not in text
    assert len(text.encode("utf-8")) < 1_000_000


def test_figures_and_verdict_are_visible_text(host_bound, page_of):
    text = Page(page_of(host_bound)).text
    assert "Host-bound, even with echo" in text
    assert "Emulated accelerator: nothing was trained." in text
    for figure in ["32.0/s", "16.0/s", "2.00×", "40.0 %", "150 ms", "error +5.0 %", "OPEN division"]:
        assert figure in text
    assert host_bound.command in text
    assert host_bound.warnings[0] in text
    assert "2.21.0" in text


def test_verdict_comes_before_the_figures_and_the_charts(host_bound, page_of):
    text = page_of(host_bound)
    assert text.index("<h1") < text.index("<table") < text.index("<svg") < text.index("Repeat this run")


def test_everything_from_the_result_is_escaped(host_bound, replace, page_of):
    hostile = replace(
        host_bound,
        verdict_text=HOSTILE,
        warnings=[HOSTILE],
        command=HOSTILE,
        created_at=HOSTILE,
        interrupted_by=HOSTILE,
        complete=False,
        echo={"factor": 2, "insert_point": HOSTILE},
        accelerator={**host_bound.accelerator, "name": HOSTILE, "provenance": HOSTILE},
        data={"data_dir": HOSTILE, HOSTILE: HOSTILE},
        config={HOSTILE: {HOSTILE: [HOSTILE]}},
        environment={"host": HOSTILE},
        prediction=replace(host_bound.prediction, basis=HOSTILE),
        phase=replace(host_bound.phase, verdict=HOSTILE),
    )
    text = page_of(hostile)
    page = Page(text)
    assert "script" not in {tag for tag, _ in page.tags}
    assert page.handlers == []
    assert "{{ 7 * 7 }}" in page.text and "49" not in Page(page_of(host_bound)).text
    assert "\x1b" not in text
    text.encode("utf-8")


def test_incomplete_run_is_marked_as_an_alert_before_the_verdict(interrupted, page_of):
    text = page_of(interrupted)
    assert text.index('role="alert">INCOMPLETE') < text.index("<h1")
    assert "n/a" in Page(text).text


def test_complete_run_on_a_real_device_has_no_notice(real_training, page_of):
    text = Page(page_of(real_training)).text
    assert "INCOMPLETE" not in text
    assert "Emulated" not in text
    assert "Loss of the last step" in text


def test_missing_chart_is_named_with_its_reason(host_bound, replace, page_of, draw_once):
    charts = draw_once(host_bound)
    charts[1] = replace(charts[1], svg="", png=b"", missing="no <ink>", failed=True)
    text = page_of(host_bound)
    page = html_page(host_bound, charts)
    assert "This chart is missing. no &lt;ink&gt;" in page
    assert page.count("<svg") == text.count("<svg") - 1 == 2


def test_tables_and_charts_are_accessible(host_bound, page_of):
    page = Page(page_of(host_bound))
    headers = [attributes for tag, attributes in page.tags if tag == "th"]
    assert headers and all(attributes.get("scope") in ("row", "col") for attributes in headers)
    images = [attributes for _, attributes in page.tags if attributes.get("role") == "img"]
    assert len(images) == 3 and all(attributes["aria-label"] for attributes in images)
    ids = [attributes["id"] for _, attributes in page.tags if attributes.get("id")]
    assert len(ids) == len(set(ids))


def test_mlperf_note_is_absent_without_echo(device_bound, page_of):
    text = Page(page_of(device_bound)).text
    assert "MLPerf" not in text
    assert "No baseline without echo was measured" in text


def test_nested_options_get_dotted_names():
    rows = table_rows({"a": 1, "b": {"c": None, "d": {"e": "text"}}, "f": [1, "é"]})
    assert rows == [("a", "1"), ("b.c", "null"), ("b.d.e", "text"), ("f", '[1, "é"]')]
