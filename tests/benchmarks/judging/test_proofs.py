import pytest

from benchmarks.judging.proofs import (
    Knob,
    NotProvenError,
    Seen,
    parse_setting,
    prove_field,
    prove_revision,
    prove_variable,
    with_field,
)

pytestmark = pytest.mark.unit

THREADS = Knob("env", "OMP_NUM_THREADS", ("1", "4"), reach="workers")


def test_a_variable_that_every_process_has_is_proven():
    seen = {"A": Seen({"workers": ["1", "1"]}), "B": Seen({"workers": ["4", "4"]})}

    assert prove_variable(THREADS, seen) == "/proc/PID/environ of workers: 2 and 2 processes"


def test_a_variable_that_was_replaced_on_its_way_is_refused_with_where_it_did_arrive():
    seen = {
        "A": Seen({"workers": ["1", "1"], "coordinator": ["1"]}),
        "B": Seen({"workers": ["1", "1"], "coordinator": ["4"]}),
    }

    with pytest.raises(NotProvenError) as caught:
        prove_variable(THREADS, seen)

    assert str(caught.value) == (
        "OMP_NUM_THREADS did not reach the workers of arm B: set to '4', found '1', '1';"
        " it reached coordinator (--in ROLE)"
    )


def test_a_variable_that_one_of_several_processes_lacks_is_refused():
    seen = {"A": Seen({"workers": ["1", None]}), "B": Seen({"workers": ["4", "4"]})}

    with pytest.raises(NotProvenError, match="found '1', unset"):
        prove_variable(THREADS, seen)


def test_a_role_without_processes_is_refused_with_the_roles_there_are():
    with pytest.raises(NotProvenError, match=r"no process in the role 'workers'; roles: arm"):
        prove_variable(THREADS, {"A": Seen({"arm": ["1"]}), "B": Seen({"arm": ["4"]})})


def test_the_absence_of_a_variable_is_a_setting():
    knob = Knob("env", "NAME", ("unset", "1"))
    seen = {"A": Seen({"arm": [None]}), "B": Seen({"arm": ["1"]})}

    assert prove_variable(knob, seen)


def facts(**stage):
    return Seen(facts={"stages": {"hear": stage}})


def test_a_field_is_proven_by_what_the_coordinator_reports():
    knob = Knob("field", "stages.hear.threads", ("1", "2"))

    proof = prove_field(knob, {"A": facts(threads="1"), "B": facts(threads="2")}, {})

    assert proof == "stages.hear.threads: 1 and 2"


def test_a_field_that_changed_nothing_is_refused():
    knob = Knob("field", "stages.hear.threads", ("1", "2"))

    with pytest.raises(NotProvenError, match="changed nothing"):
        prove_field(knob, {"A": facts(threads="4"), "B": facts(threads="4")}, {})


def test_a_field_that_nothing_shows_is_refused():
    knob = Knob("field", "stages.hear.options.beam", ("1", "2"))

    with pytest.raises(NotProvenError, match="nothing that a coordinator reports shows"):
        prove_field(knob, {"A": facts(), "B": facts()}, {})


def test_a_benchmark_may_name_a_fact_that_shows_a_field():
    knob = Knob("field", "stages.hear.options.beam", ("1", "2"))
    extra = {"stages.*.options.beam": "stages.*.beam"}

    assert prove_field(knob, {"A": facts(beam=1), "B": facts(beam=2)}, extra)


def test_an_arm_that_does_not_say_the_fact_is_refused():
    knob = Knob("field", "stages.hear.device.require", ("cpu", "cuda"))

    with pytest.raises(NotProvenError, match=r"do not say stages\.hear\.device"):
        prove_field(knob, {"A": facts(device="cpu"), "B": facts()}, {})


def test_a_revision_is_proven_by_import_paths():
    seen = {
        "A": Seen(code={"stagewire": "/one/sdk/stagewire/__init__.py"}),
        "B": Seen(code={"stagewire": "/two/sdk/stagewire/__init__.py"}),
    }

    assert prove_revision(seen, {"A": "/one", "B": "/two"})
    with pytest.raises(NotProvenError, match="arm B imported stagewire from /two"):
        prove_revision(seen, {"A": "/one", "B": "/twofold"})


def test_an_arm_that_does_not_say_its_code_is_refused():
    with pytest.raises(NotProvenError, match="does not say which code"):
        prove_revision({"A": Seen(), "B": Seen()}, {"A": "/one", "B": "/two"})


@pytest.mark.parametrize(
    ("text", "value"), [("2", 2), ("true", True), ("cpu", "cpu"), ('["a"]', ["a"])]
)
def test_settings_of_fields_are_json_or_words(text, value):
    assert parse_setting(text) == value


def test_a_field_is_set_by_its_path_also_where_the_plan_left_it_out():
    plan = {"stages": {"hear": {"executor": "whisper"}}}

    with_field(plan, "stages.hear.memory.resident", "2MiB")

    assert plan["stages"]["hear"] == {"executor": "whisper", "memory": {"resident": "2MiB"}}


def test_an_entry_that_the_plan_does_not_have_is_not_made():
    with pytest.raises(KeyError, match="see"):
        with_field({"stages": {}}, "stages.see.threads", 2)
