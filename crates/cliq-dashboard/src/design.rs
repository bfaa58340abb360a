//! Page of all elements in all states, in debug builds only: to look at after a change of the style, and for pictures in tests.

use maud::{Markup, html};

use crate::elements::{badge, empty, folded, output, progress};
use crate::icons::Icon;
use crate::page::{Page, show};
use crate::visitor::Visitor;

const STATES: [&str; 12] = [
    "queued",
    "starting",
    "running",
    "waiting",
    "completed",
    "escalated",
    "failed",
    "cancelled",
    "stopped",
    "skipped",
    "pending",
    "valid",
];

/// The page.
pub(super) async fn page(visitor: Visitor) -> Page {
    let long = "The tests do not pass: file `mended` is missing. ".repeat(8);
    let content = html! {
        h1 { "Design" }
        h2 { "States" }
        p.facts { @for state in STATES { (badge(state)) } }
        h2 { "Icons" }
        p.facts { @for icon in Icon::ALL { span { (icon.render()) " " (format!("{icon:?}")) } } }
        h2 { "Type" }
        h1 { "Heading 1" }
        h2 { "Heading 2" }
        h3 { "Heading 3" }
        p { "Text with " a href="#" { "a link" } ", " code { "code" } ", " strong { "strong" } " and " span.quiet { "quiet" } " text." }
        h2 { "Notes" }
        p.note { "A note." }
        p.warning role="note" { strong { "check" } ": a warning with a reason." }
        p.alert role="note" { "Something failed." }
        (empty("Nothing is here."))
        h2 { "Long text" }
        (folded(&long))
        (output("Output", "line 1\nline 2\n"))
        h2 { "Progress" }
        p.facts { (progress(0, 6, "phases")) (progress(3, 6, "phases")) (progress(6, 6, "phases")) }
        h2 { "Controls" }
        (controls())
        h2 { "Table" }
        table {
            thead { tr { th { "Name" } th { "State" } th { "Tokens" } } }
            tbody {
                @for state in &STATES[..4] {
                    tr { td { "a phase" } td { (badge(state)) } td.number data-label="tokens" { "1\u{2009}234" } }
                }
            }
        }
        h2 { "Tabs" }
        nav.tabs aria-label="Example" { a href="#" aria-current="page" { "Overview" } a href="#" { "Timeline" } a href="#" { "Events" } }
        h2 { "Differences" }
        pre.diff { b { "diff --git a/x b/x" } "\n" del { "-old" } "\n" ins { "+new" } "\n same\n" }
    };
    show(&visitor, "Design", "", &content)
}

fn controls() -> Markup {
    html! {
        div.actions {
            button.primary type="button" { "Primary" }
            button type="button" { "Button" }
            button.danger type="button" { "Danger" }
            button type="button" disabled { "Disabled" }
            a.button.ghost href="#" { "Ghost" }
        }
        form.stack {
            label for="text" { "Text" }
            input #text value="a value";
            label for="choice" { "Choice" }
            select #choice { option { "one" } option { "two" } }
            label for="long" { "Long text" }
            textarea #long rows="2" { "several\nlines" }
        }
    }
}
