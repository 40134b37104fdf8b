"""validate.py SCHEMA FILE…: checks that JSON files match a schema, and that the schema describes all of their fields.
Each line of a .jsonl file is an object. With --open, fields that the schema does not have are accepted.
"""
import json
import sys

import fastjsonschema


def closed(schema):
    """The schema, without fields that it does not name."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: closed(value) for key, value in schema.items()}
    if isinstance(result.get("properties"), dict) and "type" in result:
        result.setdefault("additionalProperties", False)
    return result


arguments = sys.argv[1:]
is_open = arguments[0] == "--open"
schema, *files = arguments[is_open:]
with open(schema) as file:
    schema = json.load(file)
validate = fastjsonschema.compile(schema if is_open else closed(schema))
for path in files:
    with open(path) as file:
        documents = [json.loads(line) for line in file] if path.endswith(".jsonl") else [json.load(file)]
    first = documents[0]
    assert first["format"].startswith("devprof ") and first["version"] >= 1, first
    for document in documents:
        try:
            validate(document)
        except fastjsonschema.JsonSchemaException as error:
            sys.exit(f"{path}: {error.message}: {json.dumps(document)[:2000]}")
    print(f"{path}: {first['format']} {first['version']}, valid")
