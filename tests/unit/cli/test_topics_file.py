"""Topic definitions in YAML: what is read, and how every mistake is named."""

from __future__ import annotations

import pytest

from quorate.cli.topics_file import TopicsFileError, read_topics
from quorate.controller.topics.messages import NewTopic

GOOD = """
topics:
  orders:
    partitions: 12
    replication: 3
    configs: {cleanup.policy: compact, retention.ms: 604800000, preallocate: true}
  placed:
    assignments: [[1, 2], [2, 3]]
  defaults:
"""


def findings(text: str) -> list[str]:
    with pytest.raises(TopicsFileError) as caught:
        read_topics(text, "f.yaml")
    return str(caught.value).splitlines()


def test_definitions_become_topics_in_the_order_of_the_file() -> None:
    configs = (
        ("cleanup.policy", "compact"),
        ("retention.ms", "604800000"),
        ("preallocate", "true"),
    )
    assert read_topics(GOOD, "f.yaml") == (
        NewTopic("orders", 12, 3, (), configs),
        NewTopic("placed", assignments=((1, 2), (2, 3))),
        NewTopic("defaults"),
    )


@pytest.mark.parametrize(
    ("definition", "finding"),
    [
        ("{partitions: 0}", ".partitions: 0 is no whole number above 0"),
        ("{replication: three}", ".replication: 'three' is no whole number above 0"),
        ("{partitions: true}", ".partitions: True is no whole number above 0"),
        ("{partitions: 2147483648}", ".partitions: 2147483648 is more than 2147483647"),
        ("{replication: 32768}", ".replication: 32768 is more than 32767"),
        (
            "{assignments: [[2147483648]]}",
            ".assignments: a list of lists of broker ids is needed, one a partition",
        ),
        (
            "{partition: 1}",
            ".partition: not known; known are partitions, replication, assignments, configs",
        ),
        ("7", ": a map of fields is needed, such as partitions: 6"),
        ("{configs: [a]}", ".configs: a map from names to values is needed"),
        ("{configs: {a: [1]}}", ".configs['a']: [1] is no string, number or boolean"),
        ("{configs: {1: a}}", ".configs: 1 is no name; put it into quotes"),
        (
            "{assignments: [[1], []]}",
            ".assignments: a list of lists of broker ids is needed, one a partition",
        ),
        (
            "{assignments: 1}",
            ".assignments: a list of lists of broker ids is needed, one a partition",
        ),
        (
            "{assignments: [[1]], partitions: 1}",
            ".assignments: stands in place of partitions and replication; leave these",
        ),
    ],
)
def test_a_finding_names_the_entry_and_the_field(definition: str, finding: str) -> None:
    assert findings(f"topics: {{orders: {definition}}}") == [f"f.yaml: topics['orders']{finding}"]


def test_every_finding_is_shown() -> None:
    lines = findings("topics: {'a b': {partitions: 0}, 3: {}}\nmore: 1\n")
    assert [line.split(":")[1] for line in lines] == [
        " more",
        " topics['a b']",
        " topics['a b'].partitions",
        " topics[3]",
    ]


def test_a_long_list_of_findings_is_cut() -> None:
    entries = "".join(f"  t{i}: 1\n" for i in range(25))
    lines = findings(f"topics:\n{entries}")
    assert (len(lines), lines[-1]) == (21, "f.yaml: and 5 more")


def test_a_name_that_occurs_twice_is_refused_with_both_lines() -> None:
    assert findings("topics:\n  a: {}\n  a: {}\n") == [
        "f.yaml: 'a' occurs in line 2 and in line 3; a name may stand there once"
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("topics: [", "no YAML"),
        ("{[1]: 2}", "no YAML"),
        ("[]", "a map `topics`"),
        ("topics: {}", "no topic stands there"),
    ],
)
def test_what_is_no_list_of_topics_is_refused(text: str, words: str) -> None:
    assert words in findings(text)[0]


@pytest.mark.parametrize("value", ["2020-13-45", "9" * 5000])
def test_what_looks_like_a_number_or_a_date_and_is_none_is_named_with_its_line(value: str) -> None:
    (said,) = findings(f"topics:\n  a:\n    partitions: {value}\n")
    assert said.startswith("f.yaml: line 3: '")
    assert said.endswith("is no number and no date that there is; put a string into quotes")


@pytest.mark.parametrize("depth", [100, 900])
def test_what_is_nested_deeply_is_refused_in_few_words(depth: int) -> None:
    (said,) = findings("topics: {a: {configs: " + "{b: " * depth + "}" * depth + "}}")
    assert len(said) < 200


def test_aliases_that_multiply_are_not_written_out() -> None:
    lines = ["- &x0 [a, a, a, a, a, a, a, a, a]"]
    lines += [f"- &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]" for n in range(1, 12)]
    text = ["more:", *lines, "topics: {a: {configs: {b: *x11}}}"]
    _, said = findings("\n".join(text))
    assert len(said) < 400
