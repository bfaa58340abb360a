//! Default data of a phase with a schema: the smallest object that common schemas accept. Pure. The caller checks the data.

use cliq_protocol::Object;
use serde_json::{Map, Value, json};

/// Maximum depth of nested values.
const MAX_DEPTH: usize = 8;
/// Maximum number of elements of a list and of characters of a text.
const MAX_LENGTH: u64 = 1000;

/// Returns data for a schema: required properties, each with its default, its first allowed value or a small value of its type.
pub(super) fn default_data(schema: &Value) -> Object {
    match value_of(schema, 0) {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

fn value_of(schema: &Value, depth: usize) -> Value {
    if let Some(value) = schema.get("const").or_else(|| schema.get("default")) {
        return value.clone();
    }
    for list in ["enum", "examples"] {
        if let Some(first) = schema.get(list).and_then(Value::as_array).and_then(|values| values.first()) {
            return first.clone();
        }
    }
    for list in ["oneOf", "anyOf", "allOf"] {
        if let Some(first) = schema.get(list).and_then(Value::as_array).and_then(|values| values.first()) {
            return value_of(first, depth + 1);
        }
    }
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str).unwrap_or("object"),
        _ => "object",
    };
    let number = |name: &str| schema.get(name).and_then(Value::as_f64);
    let count = |name: &str| schema.get(name).and_then(Value::as_u64).unwrap_or(0).min(MAX_LENGTH);
    match kind {
        "string" => {
            let length = usize::try_from(count("minLength")).unwrap_or(0);
            let text = "scripted";
            let most = schema.get("maxLength").and_then(Value::as_u64).unwrap_or(MAX_LENGTH);
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            let text = text.repeat(length.div_ceil(text.len()).max(1));
            text.chars().take(most.min(length.max("scripted".len()))).collect::<String>().into()
        }
        "integer" => {
            let least = number("minimum").or_else(|| number("exclusiveMinimum").map(|n| n + 1.0));
            let most = number("maximum").or_else(|| number("exclusiveMaximum").map(|n| n - 1.0));
            json!(least.map_or_else(|| most.map_or(1.0, |most| most.min(1.0)).floor(), f64::ceil) as i64)
        }
        "number" => {
            let least = number("minimum").or_else(|| number("exclusiveMinimum").map(|n| n + 0.5));
            json!(least.unwrap_or_else(|| number("maximum").map_or(1.0, |most| most.min(1.0))))
        }
        "boolean" => true.into(),
        "null" => Value::Null,
        "array" => {
            let item = schema.get("items").filter(|_| depth < MAX_DEPTH);
            let item = item.map_or_else(|| "scripted".into(), |item| value_of(item, depth + 1));
            vec![item; usize::try_from(count("minItems")).unwrap_or(0).max(1)].into()
        }
        _ => {
            let required = schema.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let properties = schema.get("properties");
            let mut object = Map::new();
            for name in required.iter().filter_map(Value::as_str).filter(|_| depth < MAX_DEPTH) {
                let property = properties.and_then(|properties| properties.get(name));
                let value =
                    property.map_or_else(|| "scripted".into(), |property| value_of(property, depth + 1));
                object.insert(name.to_owned(), value);
            }
            object.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::Outputs;

    #[test]
    fn default_data_fits_common_schemas() {
        for schema in [
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}),
            json!({"type": "object", "required": ["files"], "properties": {"files": {"type": "array", "minItems": 2, "items": {"type": "string", "minLength": 20}}}}),
            json!({"type": "object", "required": ["n", "m"], "properties": {"n": {"type": "integer", "minimum": 3}, "m": {"type": "number", "exclusiveMinimum": 2}}}),
            json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer", "maximum": -4}}}),
            json!({"type": "object", "required": ["w"], "properties": {"w": {"enum": ["low", "high"]}}}),
            json!({"type": "object", "required": ["o"], "properties": {"o": {"type": "object", "required": ["b"], "properties": {"b": {"type": "boolean"}}}}}),
            json!({"required": ["x"], "properties": {"x": {"oneOf": [{"type": "null"}, {"type": "string"}]}}}),
            json!({"type": "object", "required": ["s"], "properties": {"s": {"type": "string", "maxLength": 3}}}),
            json!({}),
        ] {
            let data = default_data(&schema);
            let checked = Outputs::new(&schema).unwrap().check(Some(&data));
            assert_eq!(checked, Ok(()), "{schema} {data:?}");
        }
    }

    #[test]
    fn deep_schemas_end() {
        let mut schema = json!({"type": "string"});
        for _ in 0..100 {
            schema = json!({"type": "array", "items": schema});
        }
        let _ = default_data(&json!({"type": "object", "required": ["a"], "properties": {"a": schema}}));
    }
}
