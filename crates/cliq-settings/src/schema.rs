//! The JSON Schema of `settings.json`, for editors. Made from the table that the reader checks against.

use cliq_document::published_schema;
use serde_json::{Map, Value, json};

use crate::groups::KEYS;
use crate::keys::{Key, Kind, SIGNALS, parts};

/// Returns the JSON Schema (draft 2020-12) of `settings.json`. Where it takes a value, the reader may still refuse it.
#[must_use]
pub fn settings_schema() -> Value {
    let mut root = Group::default();
    for key in KEYS {
        root.add(key, &parts(key.path));
    }
    let mut schema = root.schema();
    schema["properties"]["$schema"] = json!({"type": "string"});
    published_schema(
        schema,
        "settings",
        "cliq settings",
        "Settings of cliq: settings.json of a person or a project.",
    )
}

/// Keys that begin alike. A key can have a value of its own, and others below it.
#[derive(Default)]
struct Group {
    own: Option<&'static Key>,
    below: Vec<(&'static str, Group)>,
}

impl Group {
    fn add(&mut self, key: &'static Key, parts: &[&'static str]) {
        let Some((first, rest)) = parts.split_first() else {
            self.own = Some(key);
            return;
        };
        let at = match self.below.iter().position(|(name, _)| name == first) {
            Some(at) => at,
            None => {
                self.below.push((first, Self::default()));
                self.below.len() - 1
            }
        };
        self.below[at].1.add(key, rest);
    }

    fn schema(&self) -> Value {
        let own = self.own.map(|key| {
            let mut schema = of(key.kind);
            schema["description"] = key.about.into();
            if let Some(default) = key.default.and_then(|text| key.parse(key.path, text).ok()) {
                schema["default"] = default;
            }
            schema
        });
        if self.below.is_empty() {
            return own.unwrap_or_default();
        }
        let (mut names, mut others) = (Map::new(), Value::Bool(false));
        for (name, group) in &self.below {
            match *name {
                "*" => others = group.schema(),
                name => drop(names.insert(name.to_owned(), group.schema())),
            }
        }
        let object = json!({"type": "object", "properties": names, "additionalProperties": others});
        own.map_or(object.clone(), |own| json!({"anyOf": [own, object]}))
    }
}

fn of(kind: Kind) -> Value {
    let texts = || json!({"type": "array", "items": {"type": "string"}});
    match kind {
        Kind::Text | Kind::Secret | Kind::Duration | Kind::Url | Kind::TraceUrl | Kind::SecretUrl => {
            json!({"type": "string", "minLength": 1})
        }
        Kind::Choice(words) => json!({"enum": words}),
        Kind::Count => json!({"type": "integer", "minimum": 1}),
        // Texts that are numbers, and sizes with a unit.
        Kind::Amount | Kind::Temperature => json!({"type": ["number", "string"], "minimum": 0}),
        Kind::Size => json!({"type": ["integer", "string"], "minimum": 1}),
        Kind::ExtraBody => json!({"type": "object"}),
        Kind::Flag => json!({"type": "boolean"}),
        Kind::List | Kind::Channels => texts(),
        Kind::Signals => json!({"type": "array", "items": {"enum": SIGNALS}}),
        Kind::Meshes | Kind::Reviewers => json!({"type": "array", "items": {"type": "object"}}),
        Kind::Tools | Kind::Permissions | Kind::Network => json!({"anyOf": [{"type": "string"}, texts()]}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_has_its_place() {
        let schema = settings_schema();
        for key in KEYS {
            let mut place = &schema;
            for part in parts(key.path) {
                let object = place.get("anyOf").map_or(place, |both| &both[1]);
                place =
                    if part == "*" { &object["additionalProperties"] } else { &object["properties"][part] };
            }
            let own = place
                .get("anyOf")
                .and_then(|both| both.get(0))
                .filter(|own| own.get("description").is_some());
            assert_eq!(own.unwrap_or(place)["description"], key.about, "{}", key.path);
        }
        assert_eq!(schema["additionalProperties"], false);
    }
}
