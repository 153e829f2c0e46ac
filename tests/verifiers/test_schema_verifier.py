"""JSON Schema: our keywords against the reference implementation, and what is refused."""

from __future__ import annotations

import time

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointsman.errors import UserError
from pointsman.verifiers import verify
from pointsman.verifiers.schema import _Check

PERSON = {
    "type": "object",
    "required": ["name", "age"],
    "properties": {
        "name": {"type": "string", "minLength": 1, "pattern": "^[A-Z]"},
        "age": {"type": "integer", "minimum": 0},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "uniqueItems": True},
    },
    "additionalProperties": False,
    "$defs": {"tag": {"enum": ["a", "b", 1]}},
}


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ('{"name": "Ines", "age": 3}', 1),
        ('Here:\n```json\n{"name": "Ines", "age": 3.0, "tags": ["a", "b", 1]}\n```', 1),
        ('{"name": "ines", "age": 3}', 0),
        ('{"name": "Ines"}', 0),
        ('{"name": "Ines", "age": true}', 0),
        ('{"name": "Ines", "age": 3, "more": 1}', 0),
        ('{"name": "Ines", "age": 3, "tags": [1, 1.0]}', 0),
        ('{"name": "Ines", "age": 3, "tags": ["c"]}', 0),
        ('{"name": "Ines", "age": 1' + "0" * 400 + "}", 1),
        ("no JSON at all", 0),
    ],
)
def test_a_reply_fits_or_does_not(reply, score):
    assert verify({"kind": "schema", "schema": PERSON}, reply) == score


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (None, "verifier schema: schema: expected a JSON Schema, got None"),
        ({"type": "text"}, 'schema.type: not what the keyword expects: "text"'),
        (
            {"properties": {"a": {"minContains": 2}}},
            "properties.a.minContains: cannot be checked, expected some",
        ),
        ({"allOf": [{"minLength": -1}]}, "schema.allOf[0].minLength: not what the keyword expects: -1"),
        ({"$ref": "http://example.org/s.json"}, "schema.$ref: not what the keyword expects"),
        ({"$ref": "#/$defs/none"}, "$ref: '#/$defs/none' is not in the schema"),
        ({"pattern": "(a+)+"}, "schema.pattern: a group that repeats or alternates must not itself repeat"),
        ({"patternProperties": {"(": True}}, "schema.patternProperties: expected a regular expression"),
        ({"multipleOf": 0}, "schema.multipleOf"),
    ],
)
def test_what_cannot_be_checked_is_refused(schema, message):
    with pytest.raises(UserError) as caught:
        verify({"kind": "schema", "schema": schema}, "{}")
    assert message in str(caught.value)


def test_no_schema_and_no_value_takes_long():
    loop = {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}
    tree = {"items": {"$ref": "#"}, "anyOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]}
    started = time.perf_counter()
    assert verify({"kind": "schema", "schema": loop}, "{}") == 0
    verify({"kind": "schema", "schema": tree}, "[" * 50 + "]" * 50)
    assert verify({"kind": "schema", "schema": {"uniqueItems": True}}, str([*range(4000), 1])) == 0
    assert time.perf_counter() - started < 20


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 1.0, -2.0])
    | st.sampled_from(["", "a", "ab"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
    max_leaves=6,
)
TYPES = ["string", "number", "integer", "boolean", "array", "object", "null"]
simple = st.one_of(
    st.booleans(),
    st.fixed_dictionaries({"type": st.sampled_from(TYPES)}),
    st.fixed_dictionaries({"type": st.just(["integer", "null"])}),
    st.fixed_dictionaries({"enum": st.lists(values, min_size=1, max_size=2)}),
    st.fixed_dictionaries({"const": values}),
    st.fixed_dictionaries({"minimum": st.integers(-2, 2), "exclusiveMaximum": st.integers(-2, 3)}),
    st.fixed_dictionaries({"multipleOf": st.sampled_from([1, 2, 0.5])}),
    st.fixed_dictionaries({"minLength": st.integers(0, 2), "maxLength": st.integers(0, 2)}),
    st.fixed_dictionaries({"pattern": st.sampled_from(["a", "^b", "a?b$"])}),
    st.fixed_dictionaries({"minItems": st.integers(0, 2), "maxItems": st.integers(0, 3), "uniqueItems": st.booleans()}),
    st.fixed_dictionaries({"minProperties": st.integers(0, 2), "maxProperties": st.integers(0, 3)}),
    st.fixed_dictionaries({"required": st.lists(st.sampled_from(["a", "b"]), max_size=2, unique=True)}),
)
schemas = st.recursive(
    simple,
    lambda inner: st.one_of(
        st.fixed_dictionaries({"properties": st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
                               "additionalProperties": inner}),
        st.fixed_dictionaries({"patternProperties": st.dictionaries(st.sampled_from(["^a", "c"]), inner, max_size=2),
                               "propertyNames": inner}),
        st.fixed_dictionaries({"prefixItems": st.lists(inner, min_size=1, max_size=2), "items": inner}),
        st.fixed_dictionaries({"contains": inner}),
        st.fixed_dictionaries({"allOf": st.lists(inner, min_size=1, max_size=2)}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2), "not": inner}),
        st.fixed_dictionaries({"oneOf": st.lists(inner, min_size=1, max_size=3)}),
    ),
    max_leaves=5,
)  # fmt: skip


@settings(max_examples=200, deadline=None, derandomize=True)
@given(schemas, values)
def test_the_reference_implementation_says_the_same(schema, value):
    check = _Check(schema)
    check.refuse_unknown(schema, "schema", 0)
    assert check.fits(value, schema, 0) == jsonschema.Draft202012Validator(schema).is_valid(value)
