import xml.etree.ElementTree as ET

import pytest

from benchmarks.judging.chart import THEMES, axis, charted, draw

pytestmark = pytest.mark.unit

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("theme", THEMES)
def test_a_chart_has_a_dot_for_each_round_and_a_median_for_each_arm(make_record, theme):
    record = make_record({"product": [1.0, 2.0, None, 3.0], "floor": [4.0] * 4})

    root = ET.fromstring(draw(record, theme))

    assert len(root.findall(f"{SVG}circle")) == 3 + 4
    texts = [item.text for item in root.iter(f"{SVG}text")]
    assert {"Time, ms", "median 2.00", "median 4.00"} <= set(texts)


def test_everything_lies_inside_of_the_picture(make_record):
    record = make_record({"product": [0.0, 7.0], "floor": [13.0, 1.0]})

    root = ET.fromstring(draw(record, "light"))

    width, height = float(root.get("width")), float(root.get("height"))
    for dot in root.iter(f"{SVG}circle"):
        assert 0 < float(dot.get("cx")) < width
        assert 0 < float(dot.get("cy")) < height


def test_themes_differ_in_their_colours_alone(make_record):
    record = make_record()
    light, dark = draw(record, "light"), draw(record, "dark")

    for one, other in zip(_colours("light"), _colours("dark"), strict=True):
        light = light.replace(one, other)
    assert light == dark


def _colours(theme):
    palette = THEMES[theme]
    return palette.text, palette.faint, *palette.arms


def test_what_was_not_measured_is_not_drawn(make_record):
    assert [metric.name for metric in charted(make_record())] == ["time"]
    assert charted(make_record({"product": [None]})) == ()


@pytest.mark.parametrize(
    ("most", "end", "stride"),
    [
        (0.0, 1.0, 0.5),
        (1.0, 1.0, 0.2),
        (692.0, 800.0, 200.0),
        (12.3, 12.5, 2.5),
        (0.03, 0.03, 0.005),
    ],
)
def test_an_axis_begins_at_zero_and_has_few_round_marks(most, end, stride):
    assert axis(most) == (pytest.approx(end), pytest.approx(stride))
