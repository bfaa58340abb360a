//! Broken team files by the hundred: each has a diagnostic with a line of the file, none makes the checker panic.

use cliq_workflow::{NoFiles, Severity, TeamCheck, check};
use proptest::prelude::*;

const TEAMS: [&str; 3] = [
    include_str!("../../../fixtures/workflow/ok/seed-simple.yml"),
    include_str!("../../../fixtures/workflow/ok/seed-full.yml"),
    include_str!("../../../fixtures/workflow/ok/newer-dialect.yml"),
];

fn problems_in_place(text: &str, checked: &TeamCheck) {
    let lines = text.lines().count().max(1) + 1;
    for d in &checked.diagnostics {
        assert!((1..=lines).contains(&d.span.line), "{d:?}\n{text}");
        assert!(d.span.column >= 1 && !d.message.is_empty() && !d.help.is_empty(), "{d:?}");
        assert!(d.span.start <= d.span.end && text.is_char_boundary(d.span.start), "{d:?}\n{text}");
    }
    assert_eq!(checked.workflow.is_none(), checked.has_errors(), "{text}");
}

/// Mutations that certainly break a team, with the line in which the break stands.
fn broken() -> Vec<(String, usize)> {
    let mut all = Vec::new();
    for team in TEAMS {
        let lines: Vec<&str> = team.lines().collect();
        let with = |n: usize, new: String| {
            let mut copy: Vec<String> = lines.iter().map(|l| (*l).to_owned()).collect();
            copy[n] = new;
            (copy.join("\n") + "\n", n + 1)
        };
        for (n, line) in lines.iter().enumerate() {
            let code = line.trim_start();
            if code.is_empty() || code.starts_with('#') || code.contains('{') || code.starts_with("- \"") {
                continue;
            }
            let Some((key, value)) = line.split_once(':') else { continue };
            let quoted_key = key.trim_start().trim_start_matches("- ");
            let free = matches!(quoted_key, "topic" | "test-specialist");
            if !free {
                // A key with a slip of the hand.
                all.push(with(n, format!("{key}x:{value}")));
                // A key that stands twice.
                if !code.starts_with("- ") && !value.trim().is_empty() {
                    let (text, at) = with(n, format!("{line}\n{line}"));
                    all.push((text, at + 1));
                }
            }
            if !value.trim().is_empty() {
                // A value of another shape.
                all.push(with(n, format!("{key}: {{oops: [1]}}")));
                // A quote that never closes.
                all.push(with(n, format!("{key}: \"never closed")));
            }
        }
    }
    all
}

#[test]
fn each_of_hundreds_of_broken_teams_is_reported_at_its_line() {
    let broken = broken();
    assert!(broken.len() >= 200, "{}", broken.len());
    for (text, line) in broken {
        let checked = check(&text, &NoFiles);
        problems_in_place(&text, &checked);
        let errors: Vec<_> = checked.diagnostics.iter().filter(|d| d.severity == Severity::Error).collect();
        assert!(!errors.is_empty(), "nothing wrong with\n{text}");
        assert!(
            errors.iter().any(|d| d.span.line == line),
            "line {line} expected, found {errors:#?}\n{text}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_text_is_checked_without_panic(text in "\\PC{0,200}") {
        problems_in_place(&text, &check(&text, &NoFiles));
    }

    #[test]
    fn any_cut_and_splice_is_checked_without_panic(
        team in 0usize..3, cut in any::<prop::sample::Index>(), len in 0usize..40, insert in "[-:\\[\\]{}&*!|>'\"#%@` \t\na-z0-9]{0,12}",
    ) {
        let chars: Vec<char> = TEAMS[team].chars().collect();
        let at = cut.index(chars.len());
        let text: String = chars[..at].iter().copied().chain(insert.chars()).chain(chars.iter().copied().skip(at + len)).collect();
        problems_in_place(&text, &check(&text, &NoFiles));
    }

    #[test]
    fn lines_in_any_order_are_checked_without_panic(team in 0usize..3, order in proptest::collection::vec(any::<prop::sample::Index>(), 1..40)) {
        let lines: Vec<&str> = TEAMS[team].lines().collect();
        let text: String = order.iter().map(|i| lines[i.index(lines.len())].to_owned() + "\n").collect();
        problems_in_place(&text, &check(&text, &NoFiles));
    }
}
