//! Title of an item of a phase with `for_each`, for people.

use serde_json::Value;

/// Maximum length of a title in characters.
const MAX_LENGTH: usize = 80;
/// Fields of an object that can be its title, the best first.
const FIELDS: [&str; 5] = ["title", "name", "path", "file", "id"];

/// Returns the title of an item, or `None` if the value has no text for people.
pub(super) fn item_title(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Object(fields) => {
            return FIELDS.iter().find_map(|field| {
                let value = fields.get(*field).filter(|value| value.is_string() || value.is_number())?;
                item_title(value)
            });
        }
        Value::Null | Value::Bool(_) | Value::Array(_) => return None,
    };
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut title: String = line.chars().take(MAX_LENGTH).collect();
    if line.chars().nth(MAX_LENGTH).is_some() {
        title.pop();
        title.push('…');
    }
    Some(title)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn titles_of_items() {
        let title = |value: Value| item_title(&value);
        assert_eq!(title(json!("  \n Mend\tthe  parser \nsoon")).as_deref(), Some("Mend the parser"));
        assert_eq!(title(json!({"id": 7, "file": "a.rs"})).as_deref(), Some("a.rs"));
        assert_eq!(title(json!({"id": 7, "title": " ", "name": ["x"]})).as_deref(), Some("7"));
        assert_eq!(title(json!(1.5)).as_deref(), Some("1.5"));
        let long = title(json!("\u{1f980}".repeat(81))).unwrap();
        assert_eq!((long.chars().count(), long.ends_with('…')), (80, true));
        assert_eq!(title(json!("x".repeat(80))).as_deref(), Some("x".repeat(80).as_str()));
        for value in
            [json!(null), json!(true), json!([1]), json!({}), json!({"title": {"a": 1}}), json!("\n ")]
        {
            assert_eq!(title(value), None);
        }
    }
}
