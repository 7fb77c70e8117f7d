"""Receipts and results."""

import numpy as np
import pytest
from google.protobuf.duration_pb2 import Duration

from stagewire.client.receipt import (
    Grade,
    HopReceipt,
    Receipt,
    StageReceipt,
    Table,
    Verdict,
    from_message,
)
from stagewire.client.result import Result
from stagewire.errors import FieldInvalidError, TensorMismatchError
from stagewire.v1 import capability_pb2
from stagewire.v1 import coordinator_pb2 as pb

pytestmark = pytest.mark.unit

MESSAGE = pb.Receipt(
    request_id="mine",
    total=Duration(seconds=1, nanos=500_000_000),
    stages=[
        pb.StageReceipt(
            stage_id="hear",
            worker_id="speech",
            device="cpu",
            incarnation=2,
            verdict=capability_pb2.VERDICT_FULL,
            grade=capability_pb2.GRADE_B,
            busy=Duration(nanos=1_250_000),
            queued=Duration(),
            input_bytes=10,
            output_bytes=3,
        )
    ],
    hops=[
        pb.HopReceipt(
            source="audio", target="hear.audio", transport="chunked", items=1, size_bytes=9
        )
    ],
)
RECEIPT = Receipt(
    "mine",
    1.5,
    None,
    (
        StageReceipt(
            stage_id="hear",
            worker_id="speech",
            device="cpu",
            incarnation=2,
            verdict=Verdict.FULL,
            grade=Grade.B,
            queued_seconds=0.0,
            busy_seconds=0.00125,
            first_output_seconds=None,
            total_seconds=None,
            input_bytes=10,
            output_bytes=3,
        ),
    ),
    (HopReceipt("audio", "hear.audio", "chunked", 1, 9),),
)


def test_a_receipt_is_read_from_the_wire():
    assert from_message(MESSAGE) == RECEIPT


def test_the_words_are_those_of_the_wire():
    for words, wire in ((Grade, capability_pb2.Grade), (Verdict, capability_pb2.Verdict)):
        expected = {name.partition("_")[2]: number for name, number in wire.items()}
        expected["UNKNOWN"] = expected.pop("UNSPECIFIED")
        assert {word.name: word.value for word in words} == expected


def test_a_word_of_a_newer_version_is_unknown():
    message = pb.Receipt(stages=[pb.StageReceipt(verdict=77, grade=77)])
    (stage,) = from_message(message).stages
    assert (stage.verdict, stage.grade) == (Verdict.UNKNOWN, Grade.UNKNOWN)


def test_grades_are_ordered_from_weak_to_strong():
    assert Grade.E < Grade.D < Grade.B < Grade.C < Grade.P


def test_a_receipt_is_a_table_with_a_row_for_each_stage():
    table = RECEIPT.table()
    (row,) = table.rows
    cells = dict(zip(table.columns, row, strict=True))
    assert cells["stage"] == "hear"
    assert cells["verdict"] == "full"
    assert cells["grade"] == "B"
    assert cells["queued"] == "0.0 ms"
    assert cells["busy"] == "1.2 ms"
    assert cells["total"] == "-"


def test_tables_are_aligned_text():
    assert str(RECEIPT.hop_table()) == (
        "from   to          transport  items  bytes\naudio  hear.audio  chunked    1      9"
    )
    assert str(Table(("stage",), ())) == "stage"


# --- results ---


def test_the_one_item_of_an_output_is_returned():
    result = Result({"text": ["a"], "many": ["b", "c"]}, RECEIPT)
    assert result.output("text") == "a"
    with pytest.raises(FieldInvalidError, match="2 items"):
        result.output("many")
    with pytest.raises(FieldInvalidError, match="text, many"):
        result.output("absent")


def test_texts_are_joined():
    result = Result({"text": ["a", " b"], "audio": [np.zeros(2)]}, RECEIPT)
    assert result.text("text") == "a b"
    assert result.text("absent") == ""
    with pytest.raises(TensorMismatchError):
        result.text("audio")


def test_samples_are_joined():
    pieces = [np.array([0.5], np.float32), np.array([], np.float32), np.array([1, 2], np.float32)]
    result = Result({"reply": pieces, "text": ["a"], "image": [np.zeros((2, 2))]}, RECEIPT)
    assert result.audio("reply").tolist() == [0.5, 1, 2]
    assert result.audio("reply").dtype == np.float32
    assert result.audio("absent").size == 0
    for name in ("text", "image"):
        with pytest.raises(TensorMismatchError):
            result.audio(name)
