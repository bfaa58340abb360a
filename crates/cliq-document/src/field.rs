//! Tables of fields: the reader checks against them, and JSON Schemas are made from them.

/// Type of a field.
#[derive(Debug, Clone, Copy)]
pub enum Type {
    /// A scalar, as text.
    Text,
    /// A whole number within bounds.
    Integer(i64, i64),
    /// A number above 0, such as an amount of money.
    Amount,
    /// A number within bounds, both inclusive.
    Number(u32, u32),
    /// `true` or `false`.
    Bool,
    /// `90s`, `45m`, `8h`, `2d`.
    Duration,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list of texts.
    Texts,
    /// A text or a list of texts.
    TextOrTexts,
    /// One of these words, or a list of texts.
    WordOrTexts(&'static [&'static str]),
    /// A mapping of texts to texts.
    TextMap,
    /// A mapping with the given fields.
    Object(&'static [Field]),
    /// A text, or a mapping with the given fields.
    TextOrObject(&'static [Field]),
    /// One of these words, or a mapping with the given fields.
    WordOrObject(&'static [&'static str], &'static [Field]),
    /// A list of mappings with the given fields.
    Objects(&'static [Field]),
    /// A mapping of texts to texts, or a list of mappings with the given fields.
    TextMapOrObjects(&'static [Field]),
    /// A mapping whose keys are free and whose values have the given fields.
    ObjectMap(&'static [Field]),
    /// A mapping whose keys are free and whose values are lists of mappings with the given fields.
    ObjectsMap(&'static [Field]),
    /// Anything.
    Any,
}

/// Field of a mapping.
#[derive(Debug)]
pub struct Field {
    /// Key.
    pub name: &'static str,
    /// Type of the value.
    pub ty: Type,
    /// Whether the field must be there.
    pub required: bool,
    /// Description, for messages and the JSON Schema.
    pub doc: &'static str,
}

/// Returns a required field.
#[must_use]
pub const fn must(name: &'static str, ty: Type, doc: &'static str) -> Field {
    Field { name, ty, required: true, doc }
}

/// Returns an optional field.
#[must_use]
pub const fn may(name: &'static str, ty: Type, doc: &'static str) -> Field {
    Field { name, ty, required: false, doc }
}
