//! The JSON Schema of team.yml, for editors. Made from the table that the reader checks against.

use cliq_document::{published_schema, schema_of};
use serde_json::{Value, json};

use crate::fields::TEAM;

/// The schema (draft 2020-12).
#[must_use]
pub fn json_schema() -> Value {
    let mut schema =
        published_schema(schema_of(TEAM), "team", "cliq team", "A team of agents: team.yml of cliq.");
    schema["oneOf"] = json!([{"required": ["workflow"]}, {"required": ["phases"]}]);
    schema
}

/// Every field of team.yml: the object it stands in, its name, whether it is required, and what it is for.
pub fn field_list() -> impl Iterator<Item = (&'static str, &'static str, bool, &'static str)> {
    crate::fields::OBJECTS
        .iter()
        .flat_map(|(title, fields)| fields.iter().map(move |f| (*title, f.name, f.required, f.doc)))
}
