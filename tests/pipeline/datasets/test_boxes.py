import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoing.errors import DataError
from pipeline.datasets.boxes import clip_boxes, read_boxes_csv
from pipeline.schema import Box


def test_box_within_rounding_of_the_border_is_clipped() -> None:  # SC-06, first input
    assert clip_boxes([Box(-0.00005, 0.25, 0.5, 1.0000001)]) == ((Box(0.0, 0.25, 0.5, 1.0),), "")


@pytest.mark.parametrize(
    ("box", "words"),
    [
        (Box(0.1, 0.1, 0.5, 1.15), "xmax is 1.15"),
        (Box(20.0, 12.0, 240.0, 200.0), "pixel coordinates?"),
        (Box(0.5, 0.1, 0.5, 0.2), "without area"),
        (Box(0.6, 0.1, 0.5, 0.2), "without area"),
        (Box(math.nan, 0.1, 0.5, 0.2), "ymin is nan"),
        (Box(0.1, 1.00001, 0.5, 1.00005), "without area"),  # wholly outside: nothing is left of it
        (Box(-0.00005, 0.1, -0.00001, 0.5), "without area"),
    ],
)
def test_other_boxes_are_refused_with_the_reason(box: Box, words: str) -> None:  # SC-06
    good = Box(0.0, 0.0, 1.0, 1.0)
    for boxes in ([box], [good, box], [box, good], [good, box, good]):
        clipped, problem = clip_boxes(boxes)
        assert clipped == ()
        assert words in problem


@given(st.lists(st.builds(Box, *[st.floats(-0.001, 1.001)] * 4), max_size=3))
def test_accepted_boxes_lie_inside_have_area_and_pass_again(boxes: list[Box]) -> None:
    clipped, problem = clip_boxes(boxes)
    if not problem:
        assert len(clipped) == len(boxes)
        for box in clipped:
            assert 0 <= box.ymin < box.ymax <= 1 and 0 <= box.xmin < box.xmax <= 1
        assert clip_boxes(clipped) == (clipped, "")


def test_csv_gives_boxes_by_file_with_any_column_order_and_quoted_names(tmp_path: Path) -> None:
    path = tmp_path / "boxes.csv"
    path.write_text(
        '\ufeffxmin,filename,ymin,xmax,ymax,note\n0.1,"a,b/my ""x"".jpg",0.2,0.3,0.4,n\n0,c/1.jpg,0,1,1,\n'
        '0.5,"a,b/my ""x"".jpg",0.5,0.6,0.6,\n',
        encoding="utf-8",
    )
    assert read_boxes_csv(str(path)) == {
        'a,b/my "x".jpg': [Box(0.2, 0.1, 0.4, 0.3), Box(0.5, 0.5, 0.6, 0.6)],
        "c/1.jpg": [Box(0.0, 0.0, 1.0, 1.0)],
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no column filename"),
        ("filename,xmin,ymin,xmax\na,0,0,1\n", "no column ymax"),
        ("filename,xmin,ymin,xmax,ymax\na,0,0,1,1\nb,0,0,wide,1\n", "line 3: xmax is 'wide'"),
        ("filename,xmin,ymin,xmax,ymax\na,0,0,1\n", "ymax is None"),
        ("filename,xmin,ymin,xmax,ymax\na,0,nan,1,1\n", "ymin is 'nan'"),
    ],
)
def test_damaged_csv_is_refused_with_the_place(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "boxes.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=r"boxes\.csv") as caught:
        read_boxes_csv(str(path))
    assert words in str(caught.value)


def test_missing_csv_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        read_boxes_csv(str(tmp_path / "none.csv"))
