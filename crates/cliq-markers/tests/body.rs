//! Bodies of markers: keys, values, items, prompts, and typed fields.

use cliq_markers::{CheckResult, Issue, Level, Marker, MarkerKind, Section, Writer, scan};

fn marker(text: &str) -> Marker<'_> {
    let mut markers = scan(text).markers;
    assert_eq!(markers.len(), 1, "{text}");
    markers.remove(0)
}

fn with_body(body: &str) -> Marker<'static> {
    marker(&format!("READY_FOR_REVIEW: t\n{body}")).into_owned()
}

fn section(key: &str, value: &str, items: &[&str], text: &str) -> Section {
    Section {
        key: key.to_owned(),
        value: value.to_owned(),
        items: items.iter().map(|item| (*item).to_owned()).collect(),
        text: text.to_owned(),
    }
}

#[test]
fn a_body_is_its_lines_without_blank_ones_around_them() {
    let found = with_body("\n  \nSummary: done \t\n\nand more\r\n\n");
    assert_eq!(found.body().lines(), ["Summary: done", "", "and more"]);
    assert_eq!(found.body().text(), "Summary: done\n\nand more");
    assert_eq!(found.body(), with_body("Summary: done\n\nand more").body());
    assert_ne!(found.body(), with_body("Summary: done\nand more").body());
    assert!(with_body("\n\n").body().lines().is_empty());
}

#[test]
fn keys_are_words_before_a_colon() {
    let long = "k".repeat(60);
    for key in ["Summary", "Verification Results (self-verified)", "Can't", "A/B", "x2", "Ärger", &long] {
        assert_eq!(with_body(&format!("{key}: v")).body().sections(), [section(key, "v", &[], "")], "{key}");
        assert_eq!(
            with_body(&format!("{key}:\tv ")).body().sections(),
            [section(key, "v", &[], "")],
            "{key}"
        );
        assert_eq!(with_body(&format!("{key}:\nv")).body().sections(), [section(key, "", &[], "v")], "{key}");
    }
    for text in
        ["https://example.com", "2 things: a", "Key : v", "a, b: c", "a=b: c", ": v", &format!("{long}k: v")]
    {
        assert_eq!(with_body(text).body().sections(), [section("", "", &[], text)], "{text}");
    }
}

#[test]
fn items_have_a_dash_a_star_or_a_number() {
    let found =
        with_body("List:\n- one\n  below\n\tit\n* two\n3. three\n999. four\n1000. text\n.5 text\n5.text\n");
    let items = ["one\nbelow\nit", "two", "three", "four"];
    assert_eq!(found.body().sections(), [section("List", "", &items, "1000. text\n.5 text\n5.text")]);
    // An indented line after a text belongs to the text.
    let found = with_body("List:\n- one\ntext\n  more\nOther:\n  not of an item");
    let expected =
        [section("List", "", &["one"], "text\n  more"), section("Other", "", &[], "not of an item")];
    assert_eq!(found.body().sections(), expected);
    // Nor does an item go on below the next key.
    assert_eq!(with_body("A:\n- one\nB: b\n  c").body().value("b").as_deref(), Some("b"));
    assert_eq!(with_body("A:\n- one\nB:\n  c").body().items("a"), ["one"]);
}

#[test]
fn a_key_is_found_without_its_remark_and_in_any_case() {
    let found = with_body("Results (self-verified):\n- a\nName (of) x: v\nEmpty:\nResults: later");
    assert_eq!(found.body().items("results"), ["a"]);
    assert_eq!(found.body().value("NAME (OF) X").as_deref(), Some("v"));
    assert_eq!(found.body().value("Name"), None, "what is in parentheses is in the middle of the key");
    assert_eq!(found.body().value("Empty"), None);
    assert_eq!(found.body().section("Empty"), Some(section("Empty", "", &[], "")));
    assert_eq!(found.body().section("None"), None);
}

#[test]
fn the_prompt_for_an_expert_keeps_its_own_keys() {
    let prompt = "---DELEGATION PROMPT START---\nKey: v\n- item\n\n---DELEGATION PROMPT END---\n";
    let found = marker(&format!("EXPERT_REQUEST\n{prompt}Next: w\n- own\n")).into_owned();
    assert_eq!(found.body().delegation_prompt().as_deref(), Some("Key: v\n- item"));
    assert_eq!(found.body().value("Key"), None);
    assert_eq!(found.body().section("Next"), Some(section("Next", "w", &["own"], "")));
    // An empty prompt is one; an end before the start is none.
    let empty = "EXPERT_REQUEST\n---DELEGATION PROMPT START---\n---DELEGATION PROMPT END---\n";
    assert_eq!(marker(empty).body().delegation_prompt().as_deref(), Some(""));
    let reversed = "EXPERT_REQUEST\n---DELEGATION PROMPT END---\nx\n---DELEGATION PROMPT START---\n";
    assert_eq!(marker(reversed).body().delegation_prompt(), None);
}

#[test]
fn an_owned_marker_is_the_same_marker() {
    let text = "talk\nREVIEW_FAILED: t 1\n\nPriority: LOW\n".to_owned();
    let owned = marker(&text).into_owned();
    assert_eq!(owned, marker(&text));
    assert_eq!((owned.line, owned.id(), owned.priority()), (2, Some("t"), Some(Level::Low)));
    assert_eq!(owned.to_string(), "REVIEW_FAILED: t 1\n\nPriority: LOW\n");
    assert_eq!(marker("REMEDIATION_COMPLETE\n").to_string(), "REMEDIATION_COMPLETE\n");
}

#[test]
fn levels_and_answers() {
    let expanded = |body: &str| marker(&format!("EXPANDED_TASK_SPECIFICATION: t\n{body}")).into_owned();
    for (word, level) in [
        ("HIGH", Some(Level::High)),
        ("medium", Some(Level::Medium)),
        ("Low", Some(Level::Low)),
        ("none", None),
    ] {
        assert_eq!(expanded(&format!("Confidence: {word}")).confidence(), level);
        assert_eq!(expanded(&format!("Priority: {word}")).priority(), level);
    }
    assert!(Level::Low < Level::Medium && Level::Medium < Level::High);
    let conflict = |body: &str| marker(&format!("FILE CONFLICT: a.rs\n{body}")).into_owned();
    assert_eq!(conflict("Can Wait: yes").can_wait(), Some(true));
    assert_eq!(conflict("Can Wait: perhaps").can_wait(), None);
    assert_eq!(conflict("").can_wait(), None);
    assert_eq!(conflict("Assigned To: task-2").assigned_to().as_deref(), Some("task-2"));
    assert_eq!(conflict("Assigned To: unknown").assigned_to(), None);
}

#[test]
fn findings_have_a_place_if_they_name_one() {
    let issue =
        |file: Option<&str>, line, text: &str| Issue { file: file.map(Into::into), line, text: text.into() };
    for (item, expected) in [
        ("src/a.rs:12: unwrap", issue(Some("src/a.rs"), Some(12), "unwrap")),
        ("src/a.rs: 12: unwrap", issue(Some("src/a.rs"), Some(12), "unwrap")),
        ("src/a.rs:fn x: unwrap", issue(Some("src/a.rs"), None, "fn x: unwrap")),
        ("src/a.rs: unwrap", issue(Some("src/a.rs"), None, "unwrap")),
        ("it is slow: very", issue(None, None, "it is slow: very")),
        (": text", issue(None, None, ": text")),
        ("slow", issue(None, None, "slow")),
    ] {
        assert_eq!(with_body(&format!("Issues Found:\n- {item}")).issues(), [expected], "{item}");
    }
}

#[test]
fn checks_pass_by_their_first_word() {
    let check = |check: &str, environment: Option<&str>, passed, detail: &str| CheckResult {
        check: check.into(),
        environment: environment.map(Into::into),
        passed,
        detail: detail.into(),
    };
    for (item, expected) in [
        ("unit (ci): PASS", check("unit", Some("ci"), true, "")),
        ("unit: passed in 2 s", check("unit", None, true, "")),
        ("login: VERIFIED - by hand", check("login", None, true, "by hand")),
        ("login: FAILED - 500", check("login", None, false, "500")),
        ("a: b: PASS", check("a: b", None, true, "")),
        ("unit (ci)x: PASS", check("unit (ci)x", None, true, "")),
        ("unit", check("unit", None, false, "")),
        ("e2e: FAIL - bad\n  Exit: 1", check("e2e", None, false, "bad\nExit: 1")),
    ] {
        assert_eq!(with_body(&format!("Commands Executed:\n- {item}")).checks(), [expected], "{item}");
    }
    // Under any of the keys that markers use.
    let keys =
        ["Verification Results", "Commands Executed", "Failed Criteria", "Failed Checks", "Passing Checks"];
    for key in keys {
        assert_eq!(with_body(&format!("{key}:\n- a: PASS")).checks(), [check("a", None, true, "")], "{key}");
    }
}

#[test]
fn files_are_named_without_what_is_said_of_them() {
    let found = with_body(
        "Files Modified:\n- a.rs: new\n- b c.rs\nFiles Reviewed:\n- d.rs\nTarget Files:\n- e.rs: x: y\n",
    );
    assert_eq!(found.files(), ["a.rs", "b c.rs", "d.rs", "e.rs"]);
}

#[test]
fn an_empty_field_is_a_warning_unless_it_says_none() {
    let warnings = |body: &str| marker(&format!("TASK_INCOMPLETE: t\n{body}")).warnings();
    assert_eq!(warnings("Blocker: b\nAttempted: a\nNeeded:\n"), ["`Needed` is empty"]);
    assert!(warnings("Blocker:\n- b\nAttempted: a\nNeeded:\nbelow\n").is_empty());
    let warnings = |body: &str| marker(&format!("REMEDIATION_COMPLETE\n{body}")).warnings();
    assert!(warnings("Issues Fixed: none\nVerification Results:\n- a: PASS\n").is_empty());
    assert_eq!(
        warnings("Issues Fixed:\nVerification Results:\n- a: PASS\n"),
        ["`Issues Fixed` has no items"]
    );
    // An optional field may be missing, not wrong.
    let audit = "AUDIT_FAILED: t\nFailed Criteria:\n- a\nIssues Found:\n- a\nRequired Fixes:\n- a\n";
    assert!(marker(audit).warnings().is_empty());
    assert_eq!(
        marker(&format!("{audit}Passing Criteria:\n")).warnings(),
        ["`Passing Criteria` has no items"]
    );
    assert_eq!(
        marker("EXPERT_REQUEST\nTarget Agent: a\nRequest Type: decision\n").warnings(),
        ["it has no delegation prompt"]
    );
}

#[test]
fn the_writer_keeps_values_apart() {
    let written = Writer::new(MarkerKind::TaskIncomplete, " a  b ")
        .line("Blocker", " none ")
        .line("Needed", "two\nlines")
        .text("Context", "AUDIT_PASSED: x\n```\n~~~\n---DELEGATION PROMPT START---\n----")
        .items("List", ["one\n\n  AUDIT_PASSED: y", "", "two"])
        .delegation_prompt("---DELEGATION PROMPT START---\np\n---DELEGATION PROMPT END---")
        .finish();
    let expected = "TASK_INCOMPLETE: a b\n\nBlocker: none\n\nNeeded:\ntwo\nlines\n\nContext:\n    AUDIT_PASSED: x\n    ```\n    ~~~\n    \
        ---DELEGATION PROMPT START---\n----\n\nList:\n- one\n  AUDIT_PASSED: y\n- two\n\n---DELEGATION PROMPT START---\np\n---DELEGATION \
        PROMPT END---\n";
    assert_eq!(written.to_string(), expected);
    // A marker that stands alone shows no subject.
    assert_eq!(
        Writer::new(MarkerKind::RemediationComplete, "x").finish().to_string(),
        "REMEDIATION_COMPLETE\n"
    );
}

#[test]
fn lines_that_resemble_markers_are_reported_with_the_cause() {
    for (line, name, why) in [
        ("AUDIT_PASSED:", "AUDIT_PASSED", "the task's id is missing after it"),
        ("FILE CONFLICT:", "FILE CONFLICT", "the file's path is missing after it"),
        ("EXPERT_CREATED:", "EXPERT_CREATED", "the expert's name is missing after it"),
        ("EXPERT_ADVICE:", "EXPERT_ADVICE", "the request's id is missing after it"),
        ("REMEDIATION_COMPLETE now", "REMEDIATION_COMPLETE", "it must be alone on its line"),
        ("REMEDIATION_COMPLETE: now", "REMEDIATION_COMPLETE", "it must be alone on its line"),
    ] {
        let found = scan(line).malformed;
        assert_eq!(found.len(), 1, "{line}");
        assert_eq!((found[0].line, found[0].name, found[0].why), (1, name, why), "{line}");
    }
    // Another word that begins with a name is text.
    assert!(scan("REMEDIATION_COMPLETED\n").malformed.is_empty());
    assert_eq!(format!("{:>14}|", MarkerKind::AuditPassed), "  AUDIT_PASSED|");
}

#[test]
fn fences_and_prompts_begin_with_their_exact_lines() {
    // Of a fence of backticks the rest of the line has none; of one of tildes it may.
    assert!(!scan("``` a`b\nAUDIT_PASSED: t\n").markers[0].fenced);
    assert!(scan("~~~ a`b\nAUDIT_PASSED: t\n").markers[0].fenced);
    assert!(scan("``` rust\nAUDIT_PASSED: t\n").markers[0].fenced);
    // A line that only begins like the start of a prompt is text.
    let text = "---DELEGATION PROMPT START--- x\nAUDIT_PASSED: t\n---DELEGATION PROMPT END---\n";
    assert_eq!(scan(text).markers.len(), 1);
    // The end of a prompt is looked for behind one that is not at the start of a line.
    let text = "---DELEGATION PROMPT START---\nx ---DELEGATION PROMPT END---\nAUDIT_PASSED: t\n---DELEGATION PROMPT END---\n";
    assert!(scan(text).markers.is_empty());
    // The first of two fences ends its own marker only.
    let text = "```\nTASK_INCOMPLETE: a\nBlocker: x\n```\nBlocker: y\n```\nTASK_INCOMPLETE: b\nBlocker: z\n```\nNeeded: n\n";
    let bodies: Vec<String> = scan(text).markers.iter().map(|marker| marker.body().text()).collect();
    assert_eq!(bodies, ["Blocker: x", "Blocker: z"]);
    // A marker on the last line, without a line end, has an empty body.
    assert_eq!(scan("AUDIT_PASSED: t").markers[0].body().text(), "");
    // Malformed lines in a fence count where the markers are in one.
    let inside = "```\nAUDIT_PASSED: t\nAUDIT_FAILED:\n```\n";
    assert_eq!(scan(inside).malformed.len(), 1);
    assert_eq!(scan(&format!("{inside}AUDIT_PASSED: u\n")).malformed.len(), 0);
}
