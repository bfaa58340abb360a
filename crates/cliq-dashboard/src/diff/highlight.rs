//! Syntax of source code, by kinds of words. The grammars are those of a kept library; a language that it does not know stays plain.

use std::ops::Range;
use std::sync::LazyLock;

use maud::{Markup, html};
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

static GRAMMARS: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);

/// Scopes with the class of their words. The first that fits the innermost scope counts.
static CLASSES: LazyLock<Vec<(Scope, &'static str)>> = LazyLock::new(|| {
    [
        ("comment", "c"),
        ("punctuation.definition.comment", "c"),
        ("string", "s"),
        ("punctuation.definition.string", "s"),
        ("constant", "n"),
        ("keyword.operator", ""),
        ("keyword", "k"),
        ("storage", "k"),
        ("entity.name.tag", "k"),
        ("entity.name.function", "f"),
        ("support.function", "f"),
        ("variable.function", "f"),
        ("entity.other.attribute-name", "f"),
        ("entity.name", "t"),
        ("support.type", "t"),
        ("support.class", "t"),
        ("markup.heading", "k"),
        ("markup.raw", "s"),
    ]
    .into_iter()
    .filter_map(|(scope, class)| Some((Scope::new(scope).ok()?, class)))
    .collect()
});

/// The most bytes of a line whose words are told apart. Longer ones are generated.
const MAX_LINE: usize = 1000;

/// Returns the grammar for a file by its name; `None` for plain text and unknown languages.
pub(super) fn grammar(path: &str) -> Option<&'static SyntaxReference> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map_or(name, |(_, extension)| extension);
    // Names such as `Makefile` stand where extensions do.
    let found =
        GRAMMARS.find_syntax_by_extension(name).or_else(|| GRAMMARS.find_syntax_by_extension(extension));
    found.filter(|syntax| syntax.name != "Plain Text")
}

/// Reader of the lines of a file in their order.
pub(super) struct Highlighter {
    state: ParseState,
    scopes: ScopeStack,
}

impl Highlighter {
    /// A reader that begins at a line of its own.
    pub(super) fn new(grammar: &SyntaxReference) -> Self {
        Self { state: ParseState::new(grammar), scopes: ScopeStack::new() }
    }

    /// Returns the parts of a line that have a class.
    pub(super) fn read(&mut self, line: &str) -> Vec<(Range<usize>, &'static str)> {
        if line.len() > MAX_LINE {
            return Vec::new();
        }
        let Ok(changes) = self.state.parse_line(&format!("{line}\n"), &GRAMMARS) else { return Vec::new() };
        let (mut parts, mut from): (Vec<(Range<usize>, &'static str)>, usize) = (Vec::new(), 0);
        let mut add = |range: Range<usize>, class: &'static str| {
            let range = range.start.min(line.len())..range.end.min(line.len());
            if class.is_empty() || range.is_empty() {
                return;
            }
            match parts.last_mut() {
                Some((last, same)) if *same == class && last.end == range.start => last.end = range.end,
                _ => parts.push((range, class)),
            }
        };
        for (at, change) in &changes {
            add(from..*at, class_of(&self.scopes));
            from = *at;
            if self.scopes.apply(change).is_err() {
                break;
            }
        }
        add(from..line.len(), class_of(&self.scopes));
        parts
    }
}

fn class_of(scopes: &ScopeStack) -> &'static str {
    let class = |scope: &Scope| {
        CLASSES.iter().find(|(prefix, _)| prefix.is_prefix_of(*scope)).map(|(_, class)| *class)
    };
    scopes.as_slice().iter().rev().find_map(class).unwrap_or_default()
}

/// Renders a line with its parts.
pub(super) fn render(line: &str, parts: &[(Range<usize>, &'static str)]) -> Markup {
    let text = |range: Range<usize>| line.get(range).unwrap_or_default();
    let ends = std::iter::once(0).chain(parts.iter().map(|(range, _)| range.end));
    html! {
        @for (from, (range, class)) in ends.zip(parts) { (text(from..range.start)) span class=(class) { (text(range.clone())) } }
        (text(parts.last().map_or(0, |(range, _)| range.end)..line.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str, lines: &[&str]) -> Vec<String> {
        let mut reader = Highlighter::new(grammar(path).expect("a grammar"));
        lines.iter().map(|line| render(line, &reader.read(line)).into_string()).collect()
    }

    #[test]
    fn words_have_their_kinds() {
        let lines = read("src/a.rs", &["fn main() { /* a", "b */ let x = \"<y>\"; }"]);
        assert!(lines[0].contains("<span class=\"k\">fn</span>"), "{lines:?}");
        assert!(lines[0].contains("<span class=\"f\">main</span>"), "{lines:?}");
        assert!(lines[1].starts_with("<span class=\"c\">b */</span>"), "{lines:?}");
        assert!(lines[1].contains("<span class=\"s\">&quot;&lt;y&gt;&quot;</span>"), "{lines:?}");
    }

    #[test]
    fn files_by_name() {
        for known in [
            "a.js",
            "a.ts",
            "x/y.tsx",
            "a.py",
            "a.go",
            "a.yml",
            "Cargo.toml",
            "Makefile",
            "Dockerfile",
            "a.sh",
            "a.java",
            "a.md",
        ] {
            assert!(grammar(known).is_some(), "{known}");
        }
        for plain in ["", "a.txt", "LICENSE", "a.unknown", "…"] {
            assert!(grammar(plain).is_none(), "{plain}");
        }
    }

    #[test]
    fn strange_lines() {
        let mut reader = Highlighter::new(grammar("a.js").expect("a grammar"));
        for line in ["", "\u{fffd}\u{2028}", "`${", "é\"é", &"x".repeat(5000)] {
            let html = render(line, &reader.read(line)).into_string();
            assert!(html.len() >= line.len(), "{line:?} became {html:?}");
        }
    }
}
