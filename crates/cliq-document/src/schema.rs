//! JSON Schemas from tables of fields, for editors.

use serde_json::{Map, Value, json};

use crate::field::{Field, Type};

/// Returns the address of a published schema, its `$id`: `team`, `team-tests`, `suite`, `triggers` or `settings` (docs/repositories.md).
#[must_use]
pub fn schema_id(name: &str) -> String {
    format!("{}/schemas/{name}.json", env!("CARGO_PKG_HOMEPAGE"))
}

/// Returns the first line of a YAML file, by which editors find its published schema.
#[must_use]
pub fn modeline(name: &str) -> String {
    format!("# yaml-language-server: $schema={}\n", schema_id(name))
}

/// Returns a JSON Schema (draft 2020-12) with its head: address, title and description.
#[must_use]
pub fn published_schema(mut schema: Value, name: &str, title: &str, description: &str) -> Value {
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["$id"] = schema_id(name).into();
    schema["title"] = title.into();
    schema["description"] = description.into();
    schema
}

/// Returns the JSON Schema (draft 2020-12) of a mapping with these fields.
#[must_use]
pub fn schema_of(fields: &[Field]) -> Value {
    let properties: Map<String, Value> = fields
        .iter()
        .map(|field| {
            let mut schema = of(field.ty);
            schema["description"] = field.doc.into();
            (field.name.to_owned(), schema)
        })
        .collect();
    let required: Vec<&str> = fields.iter().filter(|f| f.required).map(|f| f.name).collect();
    let mut schema = json!({"type": "object", "additionalProperties": false, "properties": properties});
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}

fn of(ty: Type) -> Value {
    let text = || json!({"type": ["string", "number", "boolean"]});
    match ty {
        Type::Text => text(),
        Type::Integer(least, i64::MAX) => json!({"type": "integer", "minimum": least}),
        Type::Integer(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
        Type::Amount => json!({"type": "number", "exclusiveMinimum": 0}),
        Type::Number(least, most) => json!({"type": "number", "minimum": least, "maximum": most}),
        Type::Bool => json!({"type": "boolean"}),
        Type::Duration => json!({"type": "string", "pattern": "^[0-9]+[smhd]$"}),
        Type::Word(words) => json!({"enum": words}),
        Type::Texts => json!({"type": "array", "items": text()}),
        Type::TextOrTexts => json!({"anyOf": [text(), {"type": "array", "items": text()}]}),
        Type::WordOrTexts(words) => json!({"anyOf": [{"enum": words}, {"type": "array", "items": text()}]}),
        Type::TextMap => json!({"type": "object", "additionalProperties": text()}),
        Type::TextMapOrObjects(fields) => {
            json!({"anyOf": [of(Type::TextMap), {"type": "array", "items": schema_of(fields)}]})
        }
        Type::Object(fields) => schema_of(fields),
        Type::TextOrObject(fields) => json!({"anyOf": [text(), schema_of(fields)]}),
        Type::WordOrObject(words, fields) => json!({"anyOf": [{"enum": words}, schema_of(fields)]}),
        Type::Objects(fields) => json!({"type": "array", "items": schema_of(fields)}),
        Type::ObjectMap(fields) => json!({"type": "object", "additionalProperties": schema_of(fields)}),
        Type::ObjectsMap(fields) => {
            json!({"type": "object", "additionalProperties": {"type": "array", "items": schema_of(fields)}})
        }
        Type::Any => json!({}),
    }
}
