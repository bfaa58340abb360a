//! Wording of doc comments (docs/decisions/0032-wording.md): the share of those that begin with a question word or a pronoun.

/// First words that a doc comment of a reference manual does not begin with.
const RIDDLES: [&str; 12] =
    ["What", "How", "Who", "Whose", "Why", "When", "Where", "Which", "It", "Its", "They", "That"];
/// Maximum share in percent.
const LIMIT: f64 = 2.0;

#[test]
fn doc_comments_begin_with_a_noun_phrase_or_a_verb() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut all, mut riddles) = (0, Vec::new());
    for path in crate::commands::layering::sources_below(&[root.join("crates"), root.join("bins")]) {
        for (n, line) in std::fs::read_to_string(&path).unwrap().lines().enumerate() {
            let line = line.trim_start();
            let Some(text) = line.strip_prefix("/// ").or_else(|| line.strip_prefix("//! ")) else {
                continue;
            };
            if !text.starts_with(char::is_uppercase) {
                continue;
            }
            all += 1;
            let first = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            if RIDDLES.contains(&first) {
                riddles.push(format!("{}:{}: {text}", path.display(), n + 1));
            }
        }
    }
    assert!(all > 5000, "the sources are not where this test looks");
    let share = 100.0 * riddles.len() as f64 / f64::from(all);
    assert!(share < LIMIT, "{share:.1} % of {all} doc comments:\n{}", riddles.join("\n"));
}
