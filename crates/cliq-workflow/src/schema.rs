//! The JSON Schema of team.yml, for editors. Made from the table that the reader checks against.

use serde_json::{Map, Value, json};

use crate::fields::{Field, TEAM, Type};

/// The schema (draft 2020-12).
#[must_use]
pub fn json_schema() -> Value {
    let mut schema = object(TEAM);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "cliq team".into();
    schema["description"] = "A team of agents: team.yml of cliq.".into();
    schema["oneOf"] = json!([{"required": ["workflow"]}, {"required": ["phases"]}]);
    schema
}

fn object(fields: &[Field]) -> Value {
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
        Type::Bool => json!({"type": "boolean"}),
        Type::Duration => json!({"type": "string", "pattern": "^[0-9]+[smhd]$"}),
        Type::Word(words) => json!({"enum": words}),
        Type::Texts => json!({"type": "array", "items": text()}),
        Type::TextOrTexts => json!({"anyOf": [text(), {"type": "array", "items": text()}]}),
        Type::WordOrTexts(words) => json!({"anyOf": [{"enum": words}, {"type": "array", "items": text()}]}),
        Type::TextMap => json!({"type": "object", "additionalProperties": text()}),
        Type::TextMapOrObjects(fields) => {
            json!({"anyOf": [of(Type::TextMap), {"type": "array", "items": object(fields)}]})
        }
        Type::Object(fields) => object(fields),
        Type::WordOrObject(words, fields) => json!({"anyOf": [{"enum": words}, object(fields)]}),
        Type::Objects(fields) => json!({"type": "array", "items": object(fields)}),
        Type::ObjectMap(fields) => json!({"type": "object", "additionalProperties": object(fields)}),
        Type::Any => json!({}),
    }
}

/// Every field of team.yml: the object it stands in, its name, whether it is required, and what it is for.
pub fn field_list() -> impl Iterator<Item = (&'static str, &'static str, bool, &'static str)> {
    crate::fields::OBJECTS
        .iter()
        .flat_map(|(title, fields)| fields.iter().map(move |f| (*title, f.name, f.required, f.doc)))
}
