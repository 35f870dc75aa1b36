from __future__ import annotations

from dataclasses import fields, is_dataclass

from quorate.controller.message_registry import BOUNDS, MESSAGES, REQUESTS, SHAPES
from quorate.controller.metadata_kinds import METADATA_KINDS
from quorate.controller.topics.messages import NewTopic

# What has no dataclass: the replicas of one partition are a tuple.
PLAIN = {"Replicas"}


def test_no_two_subjects_have_a_message_of_one_name() -> None:
    names = [
        name
        for module in MESSAGES
        for name, shape in vars(module).items()
        if isinstance(shape, type) and shape.__module__ == module.__name__
    ]
    assert sorted(names) == sorted(SHAPES)
    assert SHAPES["NewTopic"] is NewTopic


def test_requests_are_those_that_the_subjects_take() -> None:
    writes = {write.request for subject in METADATA_KINDS for write in subject.writes}
    reads = {kind for subject in METADATA_KINDS for kind in subject.reads}
    assert set(REQUESTS) == writes | reads


def test_every_bound_is_that_of_a_list() -> None:
    for owner, name in BOUNDS:
        if owner not in PLAIN:
            shape = SHAPES[owner]
            assert is_dataclass(shape)
            (kind,) = (str(field.type) for field in fields(shape) if field.name == name)
            assert kind.startswith("tuple[")


def test_every_request_says_what_it_takes_and_of_which_items() -> None:
    for request in REQUESTS:
        permission = request.permission
        assert (permission.items == "") == (permission.of_item is None)
        if permission.items:
            assert is_dataclass(request)
            assert permission.items in {field.name for field in fields(request)}
