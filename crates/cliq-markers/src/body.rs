//! Body of a marker: keys with values and items.

use std::borrow::Cow;

use serde::Serialize;

/// The lines after a marker, up to the next one. It borrows the text, and is taken apart only when it is asked for.
#[derive(Debug, Clone, Default)]
pub struct Body<'a>(Cow<'a, str>);

/// A key with what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Section {
    /// The key, as it is written: `Verification Results (self-verified)`. Empty for what stands before the first one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// Text after the colon on the same line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// Lines that begin with `- `, or with a number and a dot, without that; lines that are indented below one belong to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<String>,
    /// All other lines, without blank ones around them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
}

impl<'a> Body<'a> {
    pub(crate) fn new(text: impl Into<Cow<'a, str>>) -> Self {
        Self(text.into())
    }

    /// The lines themselves, without blank ones around them and without blanks at their ends.
    #[must_use]
    pub fn lines(&self) -> Vec<&str> {
        let lines: Vec<&str> = self.0.lines().map(trim_end).collect();
        let first = lines.iter().position(|line| !line.is_empty()).unwrap_or(lines.len());
        let last = lines.iter().rposition(|line| !line.is_empty()).map_or(first, |last| last + 1);
        lines[first..last].to_vec()
    }

    /// All of it as one text.
    #[must_use]
    pub fn text(&self) -> String {
        self.lines().join("\n")
    }

    /// Returns the keys with their values in order.
    #[must_use]
    pub fn sections(&self) -> Vec<Section> {
        sections(&self.lines())
    }

    /// The same, independent of the text that it was found in.
    #[must_use]
    pub fn into_owned(self) -> Body<'static> {
        Body(Cow::Owned(self.text()))
    }

    /// The first section with this key, in any case; a remark in parentheses after the key does not count.
    #[must_use]
    pub fn section(&self, key: &str) -> Option<Section> {
        self.sections().into_iter().find(|section| bare(&section.key).eq_ignore_ascii_case(key))
    }

    /// Returns the text after a key on its line, or if that is empty, the lines below it.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<String> {
        let section = self.section(key)?;
        [section.value, section.text].into_iter().find(|text| !text.is_empty())
    }

    /// The items below a key.
    #[must_use]
    pub fn items(&self, key: &str) -> Vec<String> {
        self.section(key).map_or_else(Vec::new, |section| section.items)
    }

    /// Returns the prompt for an expert: the lines between START and END of a delegation prompt.
    #[must_use]
    pub fn delegation_prompt(&self) -> Option<String> {
        let lines = self.lines();
        let at = |line: &str| lines.iter().position(|other| *other == line);
        let (start, end) = (at("---DELEGATION PROMPT START---")?, at("---DELEGATION PROMPT END---")?);
        (start < end).then(|| lines[start + 1..end].join("\n").trim().to_owned())
    }
}

/// Blanks and carriage returns at the end of a line mean nothing.
pub(crate) fn trim_end(line: &str) -> &str {
    line.trim_end_matches([' ', '\t', '\r'])
}

impl PartialEq for Body<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.lines() == other.lines()
    }
}

impl Eq for Body<'_> {}

impl Serialize for Body<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.sections().serialize(serializer)
    }
}

fn bare(key: &str) -> &str {
    match key.rfind(" (") {
        Some(at) if key.ends_with(')') => key[..at].trim_end(),
        _ => key,
    }
}

fn sections(lines: &[&str]) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let (mut text, mut in_item, mut in_prompt) = (Vec::new(), false, false);
    let mut current = Section::default();
    for &line in lines {
        // The prompt for another agent has keys of its own.
        in_prompt = match line {
            "---DELEGATION PROMPT START---" => true,
            "---DELEGATION PROMPT END---" => false,
            _ => in_prompt,
        };
        if let Some((key, value)) = key_of(line).filter(|_| !in_prompt) {
            close(&mut sections, std::mem::take(&mut current), &mut text);
            (current.key, current.value) = (key.to_owned(), value.to_owned());
            in_item = false;
        } else if let Some(item) = item_of(line).filter(|_| !in_prompt) {
            current.items.push(item.to_owned());
            in_item = true;
        } else if in_item && line.starts_with([' ', '\t']) {
            let item = current.items.last_mut();
            item.into_iter().for_each(|item| item.extend(["\n", line.trim()]));
        } else {
            in_item = false;
            text.push(line);
        }
    }
    close(&mut sections, current, &mut text);
    sections
}

fn close(sections: &mut Vec<Section>, mut section: Section, text: &mut Vec<&str>) {
    section.text = text.join("\n").trim().to_owned();
    text.clear();
    if section != Section::default() {
        sections.push(section);
    }
}

/// `Key: value` or `Key:` at the start of a line. A key is a few words: letters, digits, and what joins them.
fn key_of(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let word = |c: char| c.is_alphanumeric() || " _-/()'&".contains(c);
    let is_key = key.len() <= 60
        && key.starts_with(char::is_alphabetic)
        && key.chars().all(word)
        && !key.ends_with(' ')
        && (value.is_empty() || value.starts_with([' ', '\t']));
    is_key.then(|| (key, value.trim()))
}

fn item_of(line: &str) -> Option<&str> {
    if let Some(item) = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")) {
        return Some(item.trim());
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let item = line[digits..].strip_prefix(". ").filter(|_| (1..4).contains(&digits))?;
    Some(item.trim())
}
