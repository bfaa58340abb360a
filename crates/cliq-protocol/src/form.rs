//! The form of a review: fields that a reviewer fills in, and the check of the answers (docs/reviews.md).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::fields::{Fields, describe};
use crate::{FieldError, Object, Violations, shorten};

/// The most fields of a form, and the most bytes of one answer.
const MAX_FIELDS: usize = 50;
const MAX_ANSWER: usize = 64 * 1024;
/// Maximum number of choices of a field, and maximum size of one in bytes.
const MAX_CHOICES: usize = 1000;
const MAX_CHOICE: usize = 1000;

/// Type of a form field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FormFieldType {
    /// One line.
    Text,
    /// Several lines.
    Textarea,
    /// A finite number.
    Number,
    /// Yes or no.
    Boolean,
    /// One of some choices; at least one, all different.
    Select(Vec<String>),
}

impl FormFieldType {
    /// The word for it, as in team.yml.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Textarea => "textarea",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Select(_) => "select",
        }
    }
}

/// A field of a form.
#[derive(Debug, Clone, PartialEq)]
pub struct FormField {
    /// The name of the answer: lower-case letters, digits, `_` and `-`.
    pub name: String,
    /// Label for people.
    pub label: String,
    /// Type of the field.
    pub kind: FormFieldType,
    /// Whether an approval needs it.
    pub required: bool,
    /// The answer where none is given.
    pub default: Option<Value>,
    /// A sentence of help.
    pub help: Option<String>,
}

/// A form: fields with names that differ.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Form {
    fields: Vec<FormField>,
}

impl Form {
    /// Reads `review.inputs`: at most 50 fields with at most 1,000 choices each.
    ///
    /// Time and memory are linear in the size of the value. An error has at most 1,000 bytes.
    ///
    /// # Errors
    /// Names the part that is wrong.
    pub fn from_value(value: Value, path: &str) -> Result<Self, FieldError> {
        let Value::Array(items) = value else {
            let found = describe(&value);
            return Err(FieldError {
                field: path.to_owned(),
                expected: "a list of fields".to_owned(),
                found,
            });
        };
        if items.len() > MAX_FIELDS {
            let (expected, found) =
                (format!("at most {MAX_FIELDS} fields"), format!("{} of them", items.len()));
            return Err(FieldError { field: path.to_owned(), expected, found });
        }
        let mut names = BTreeSet::new();
        let mut fields = Vec::new();
        for (n, item) in items.into_iter().enumerate() {
            let field = FormField::read(item, &format!("{path}[{n}]"))?;
            if !names.insert(field.name.clone()) {
                let found = format!("the name {:?} a second time", field.name);
                return Err(FieldError {
                    field: format!("{path}[{n}].name"),
                    expected: "a name of its own".to_owned(),
                    found,
                });
            }
            fields.push(field);
        }
        Ok(Self { fields })
    }

    /// As team.yml writes it.
    #[must_use]
    pub fn to_value(&self) -> Value {
        Value::Array(self.fields.iter().map(FormField::to_value).collect())
    }

    /// The fields.
    #[must_use]
    pub fn fields(&self) -> &[FormField] {
        &self.fields
    }

    /// Whether there is nothing to fill in.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Checks answers and gives them with their types and with defaults. Texts stand for numbers and booleans. An empty text is not an answer.
    /// `complete` demands required fields.
    ///
    /// Time and memory are linear in the size of the answers.
    ///
    /// # Errors
    /// Each problem in a sentence that names the field: the first 20, each of at most 300 bytes, then the number of the others.
    pub fn check(&self, given: &Object, complete: bool) -> Result<Object, Vec<String>> {
        let mut problems = Violations::new();
        let short = |text: String| shorten(&text, Violations::<String>::MAX_TEXT).into_owned();
        let mut answers = Object::new();
        for name in given.keys().filter(|name| !self.fields.iter().any(|field| field.name == **name)) {
            problems.add_with(|| {
                let known: Vec<&str> = self.fields.iter().map(|field| field.name.as_str()).collect();
                let known = if known.is_empty() {
                    "the form has no fields".to_owned()
                } else {
                    format!("the form has {}", known.join(", "))
                };
                short(format!("there is no field `{}`: {known}", shorten(name, 60)))
            });
        }
        for field in &self.fields {
            let value = given.get(&field.name).filter(|value| !is_nothing(value)).or(field.default.as_ref());
            match value.map(|value| field.read_answer(value)) {
                Some(Ok(answer)) => drop(answers.insert(field.name.clone(), answer)),
                Some(Err(why)) => problems.add_with(|| short(format!("`{}` {why}", field.name))),
                None if field.required && complete => {
                    problems.add_with(|| short(format!("`{}` is missing: {}", field.name, field.label)));
                }
                None => {}
            }
        }
        if problems.is_empty() {
            return Ok(answers);
        }
        let rest = problems.rest();
        Err(problems.into_parts().0.into_iter().chain(rest).collect())
    }
}

fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty())
}

impl FormField {
    fn read(value: Value, path: &str) -> Result<Self, FieldError> {
        let mut fields = Fields::new(value, path)?;
        let name = fields.text("name")?;
        if !is_name(&name) {
            let expected = "1 to 60 lower-case letters, digits, `_` and `-`, with a letter first";
            return Err(fields.wrong("name", expected, &name.into()));
        }
        let label = fields.optional_text("label")?.unwrap_or_else(|| name.clone());
        let kind = fields.optional_text("type")?;
        let choices = match fields.take("choices") {
            None => None,
            Some(Value::Array(items)) => {
                if items.len() > MAX_CHOICES {
                    let expected = format!("at most {MAX_CHOICES} choices");
                    return Err(fields.wrong("choices", &expected, &items.len().into()));
                }
                let mut choices: Vec<String> = Vec::new();
                let mut known = BTreeSet::new();
                for item in items {
                    let choice = match &item {
                        Value::String(text) if !text.trim().is_empty() => text.clone(),
                        Value::Number(number) => number.to_string(),
                        other => return Err(fields.wrong("choices", "a list of texts", other)),
                    };
                    if choice.len() > MAX_CHOICE {
                        let expected = format!("choices of at most {MAX_CHOICE} bytes");
                        return Err(fields.wrong("choices", &expected, &item));
                    }
                    if !known.insert(choice.clone()) {
                        return Err(fields.wrong("choices", "choices that differ", &item));
                    }
                    choices.push(choice);
                }
                Some(choices)
            }
            Some(other) => return Err(fields.wrong("choices", "a list of texts", &other)),
        };
        let kind = match (kind.as_deref(), choices) {
            (Some("select"), Some(choices)) if !choices.is_empty() => FormFieldType::Select(choices),
            (Some("select"), _) => {
                return Err(fields.wrong("choices", "at least one choice", &Value::Array(Vec::new())));
            }
            (Some(_), Some(_)) => {
                return Err(fields.wrong(
                    "choices",
                    "choices only with `type: select`",
                    &Value::Array(Vec::new()),
                ));
            }
            (None, Some(choices)) if !choices.is_empty() => FormFieldType::Select(choices),
            (None, Some(_)) => {
                return Err(fields.wrong("choices", "at least one choice", &Value::Array(Vec::new())));
            }
            (None | Some("text"), None) => FormFieldType::Text,
            (Some("textarea"), None) => FormFieldType::Textarea,
            (Some("number"), None) => FormFieldType::Number,
            (Some("boolean"), None) => FormFieldType::Boolean,
            (Some(other), None) => {
                return Err(fields.wrong("type", "text, textarea, number, boolean or select", &other.into()));
            }
        };
        let required = fields.optional_bool("required")?.unwrap_or(false);
        let default = fields.take("default");
        let help = fields.optional_text("help")?;
        let mut field = Self { name, label, kind, required, default: None, help };
        if let Some(value) = default {
            let checked = field.read_answer(&value).map_err(|why| FieldError {
                field: format!("{path}.default"),
                expected: format!("a default that the field takes (it {why})"),
                found: describe(&value),
            })?;
            field.default = Some(checked);
        }
        if let Some((name, found)) = fields.rest().into_iter().find(|(_, value)| !value.is_null()) {
            let expected = "only name, label, type, required, default, choices, help".to_owned();
            return Err(FieldError {
                field: format!("{path}.{}", shorten(&name, 100)),
                expected,
                found: describe(&found),
            });
        }
        Ok(field)
    }

    fn to_value(&self) -> Value {
        let mut value = json!({"name": self.name, "label": self.label, "type": self.kind.as_str(), "required": self.required});
        if let FormFieldType::Select(choices) = &self.kind {
            value["choices"] = json!(choices);
        }
        if let Some(default) = &self.default {
            value["default"] = default.clone();
        }
        if let Some(help) = &self.help {
            value["help"] = json!(help);
        }
        value
    }

    /// An answer with the type of the field.
    fn read_answer(&self, value: &Value) -> Result<Value, String> {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            other => return Err(format!("takes a {}, not {}", self.kind.as_str(), describe(other))),
        };
        if text.len() > MAX_ANSWER {
            return Err(format!("is longer than {} KiB", MAX_ANSWER / 1024));
        }
        match &self.kind {
            FormFieldType::Text if text.contains(['\n', '\r']) => Err("takes one line".to_owned()),
            FormFieldType::Text => Ok(text.into()),
            FormFieldType::Textarea => Ok(text.replace("\r\n", "\n").into()),
            FormFieldType::Number => {
                let number = serde_json::from_str::<serde_json::Number>(text.trim()).ok();
                let number = number.filter(|number| number.as_f64().is_some_and(f64::is_finite));
                number.map(Value::Number).ok_or_else(|| format!("takes a number, not {}", describe(value)))
            }
            FormFieldType::Boolean => match text.trim().to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" => Ok(true.into()),
                "false" | "no" | "off" => Ok(false.into()),
                _ => Err(format!("takes yes or no, not {}", describe(value))),
            },
            FormFieldType::Select(choices) if choices.contains(&text) => Ok(text.into()),
            FormFieldType::Select(choices) => {
                let known = choices.iter().take(20).map(String::as_str).collect::<Vec<_>>().join(", ");
                Err(format!("takes one of {}, not {}", shorten(&known, 150), describe(value)))
            }
        }
    }
}

fn is_name(text: &str) -> bool {
    let right = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.len() <= 60 && text.bytes().all(right)
}

impl serde::Serialize for Form {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

impl<'de> serde::Deserialize<'de> for Form {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::from_value(value, "inputs").map_err(serde::de::Error::custom)
    }
}
