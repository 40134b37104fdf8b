//! JSON schemas of the output of the commands, generated from the types that they serialize.

use crate::{doctor, export, inspect, report, stats};
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// The name of each file, and its schema.
pub fn all() -> [(&'static str, Schema); 5] {
    [
        ("doctor", of::<doctor::Report>()),
        ("inspect", of::<inspect::Report>()),
        ("report", of::<report::model::Report>()),
        ("stats", of::<stats::Object>()),
        ("trace", of::<export::Object>()),
    ]
}

fn of<T: JsonSchema>() -> Schema {
    // Without references, so that properties can be moved into the alternatives.
    let settings = SchemaSettings::draft07()
        .for_serialize()
        .with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    let simplify = |schema: &mut Schema| {
        // Formats like uint32, which validators do not know.
        if schema.get("format").is_some_and(Value::is_string) {
            schema.remove("format");
        }
        move_into_alternatives(schema);
    };
    RecursiveTransform(simplify).transform(&mut schema);
    schema
}

/// Moves the properties that alternatives have in common into each of them, so that each describes its objects completely.
fn move_into_alternatives(schema: &mut Schema) {
    for key in ["anyOf", "oneOf"] {
        let Some(mut alternatives) = schema.remove(key) else {
            continue;
        };
        let properties = schema.remove("properties");
        let required = schema.remove("required");
        for alternative in alternatives.as_array_mut().into_iter().flatten() {
            if let Some(Value::Object(common)) = &properties {
                let mut all = common.clone();
                let own = alternative["properties"].take();
                all.extend(own.as_object().cloned().unwrap_or_default());
                alternative["properties"] = all.into();
            }
            if let Some(Value::Array(common)) = &required {
                let own = alternative["required"].take();
                let own = own.as_array().into_iter().flatten();
                alternative["required"] = own.chain(common).cloned().collect();
            }
        }
        schema.insert(key.to_owned(), alternatives);
    }
}
