//! Recognition of markers (docs/protocol.md).

use cliq_markers::{Agent, CheckResult, Handler, Issue, Level, MarkerKind, Writer, scan};
use proptest::prelude::*;

fn kinds(text: &str) -> Vec<(MarkerKind, Option<String>, usize)> {
    let found = scan(text).markers;
    found.iter().map(|marker| (marker.kind, marker.id().map(str::to_owned), marker.line)).collect()
}

fn one(text: &str) -> Option<MarkerKind> {
    scan(text).decisive().map(|marker| marker.kind)
}

use MarkerKind as M;

/// Name, key, who, what follows, weight, and the format that prompts quote: the whole of what agents must know.
#[test]
fn formats() {
    let mut all = String::new();
    for kind in MarkerKind::all() {
        let (handler, agent, weight) = (kind.handler(), kind.agent(), kind.priority());
        all.extend([
            &format!("## {} · {agent:?} · {handler} · {weight}\n\n", kind.key()),
            kind.format().as_str(),
            "\n",
        ]);
    }
    insta::assert_snapshot!(all);
}

#[test]
fn every_format_is_read_as_its_marker_and_lacks_nothing() {
    for kind in MarkerKind::all() {
        let text = kind.format();
        let found = scan(&text);
        assert_eq!(found.markers.len(), 1, "{text}");
        let marker = &found.markers[0];
        assert_eq!((marker.kind, marker.line), (kind, 1));
        // Its words in brackets are not a choice yet.
        let warnings = marker.warnings();
        assert!(warnings.iter().all(|w| w.contains("not one of")), "{kind}: {warnings:?}");
    }
}

#[test]
fn positions_and_separators() {
    for (text, expected) in [
        ("READY_FOR_REVIEW: task-1", Some("task-1")),
        ("READY_FOR_REVIEW:task-1", Some("task-1")),
        ("READY_FOR_REVIEW:\ttask-1 and more", Some("task-1")),
        ("READY_FOR_REVIEW: task-1\r\n", Some("task-1")),
        (" READY_FOR_REVIEW: task-1", None),
        ("this is READY_FOR_REVIEW: task-1", None),
        ("**READY_FOR_REVIEW: task-1**", None),
        ("Ready_For_Review: task-1", None),
        ("READY_FOR_REVIEW task-1", None),
        ("READY_FOR_REVIEW : task-1", None),
        ("READY_FOR_REVIEWS: task-1", None),
        // The id must be on the same line.
        ("READY_FOR_REVIEW:\ntask-1", None),
        ("READY_FOR_REVIEW:   \r\ntask-1", None),
    ] {
        let found = scan(text);
        assert_eq!(found.decisive().and_then(|marker| marker.id()), expected, "{text:?}");
        assert_eq!(found.handler() == Handler::RequestClarification, expected.is_none(), "{text:?}");
    }
    let found = scan("one\nREADY_FOR_REVIEW:\nHEALTH_AUDIT: SICK\nEXPERT_REQUEST please\n");
    let why: Vec<_> = found.malformed.iter().map(|m| (m.line, m.name)).collect();
    assert_eq!(why, [(2, "READY_FOR_REVIEW"), (3, "HEALTH_AUDIT"), (4, "EXPERT_REQUEST")]);
    assert!(found.markers.is_empty());
}

#[test]
fn markers_without_subject() {
    for (text, expected) in [
        ("REMEDIATION_COMPLETE", Some(M::RemediationComplete)),
        ("REMEDIATION_COMPLETE  \t\r\n", Some(M::RemediationComplete)),
        ("REMEDIATION_COMPLETE now", None),
        ("REMEDIATION_COMPLETE: x", None),
        ("REMEDIATION_COMPLETED", None),
        ("HEALTH_AUDIT: HEALTHY\r", Some(M::HealthAuditHealthy)),
        ("HEALTH_AUDIT: UNHEALTHY", Some(M::HealthAuditUnhealthy)),
        ("HEALTH_AUDIT:HEALTHY", None),
        ("HEALTH_AUDIT: HEALTHY indeed", None),
        ("SEEKING_DIVINE_CLARIFICATION", Some(M::SeekingDivineClarification)),
        ("EXPERT_REQUEST", Some(M::ExpertRequest)),
    ] {
        assert_eq!(one(text), expected, "{text:?}");
    }
}

#[test]
fn subjects_may_have_blanks() {
    let found = scan("FILE CONFLICT: docs/my notes.md\nEXPERT_CREATED: The Database Expert\n");
    assert_eq!(found.markers[0].subject, "docs/my notes.md");
    assert_eq!((&*found.markers[1].subject, found.markers[1].id()), ("The Database Expert", Some("The")));
}

#[test]
fn fences() {
    let fenced = "Done:\n```\nAUDIT_PASSED: t1\n```\n";
    assert_eq!(kinds(fenced), [(M::AuditPassed, Some("t1".into()), 3)]);
    assert!(scan(fenced).markers[0].fenced);
    let both = format!("{fenced}AUDIT_FAILED: t1\n");
    assert_eq!(kinds(&both), [(M::AuditFailed, Some("t1".into()), 5)]);
    for (open, close) in [("~~~", "~~~"), ("````", "````"), ("   ```text", "```"), ("```", "`````")] {
        let text = format!("{open}\nAUDIT_PASSED: t1\n{close}\nAUDIT_FAILED: t2\n");
        assert_eq!(kinds(&text).len(), 1, "{text}");
        assert_eq!(one(&text), Some(M::AuditFailed), "{text}");
    }
    for (open, not_close) in [("````", "```"), ("```", "~~~"), ("```", "``` x")] {
        let text = format!("{open}\nAUDIT_PASSED: t1\n{not_close}\nAUDIT_FAILED: t2\n");
        assert_eq!(kinds(&text).len(), 2, "both are inside: {text}");
    }
    assert_eq!(kinds("    ```\nAUDIT_PASSED: t1\n    ```\n").len(), 1);
    assert!(!scan("    ```\nAUDIT_PASSED: t1\n").markers[0].fenced, "indented by four it is not a fence");
    // The body of a marker in a fence ends with the fence.
    let found = scan("```\nTASK_INCOMPLETE: t\nBlocker: no key\n```\nNeeded: not of it\n");
    assert_eq!(found.markers[0].body().lines(), ["Blocker: no key"]);
}

#[test]
fn delegation_prompts_never_count() {
    let text = "EXPERT_REQUEST\nTarget Agent: db expert\nRequest Type: decision\n\n---DELEGATION PROMPT START---\nAnswer with\nEXPERT_ADVICE: r1\nAUDIT_PASSED: t\n---DELEGATION PROMPT END---\n\nINFRA_BLOCKED: t\n";
    let found = scan(text);
    assert_eq!(found.markers.len(), 2);
    assert_eq!(
        found.markers[0].body().delegation_prompt().as_deref(),
        Some("Answer with\nEXPERT_ADVICE: r1\nAUDIT_PASSED: t")
    );
    assert_eq!(found.markers[0].body().value("target agent").as_deref(), Some("db expert"));
    assert!(found.markers[0].warnings().is_empty(), "{:?}", found.markers[0].warnings());
    // Without its end, it is none: nothing is lost.
    assert_eq!(one("---DELEGATION PROMPT START---\nAUDIT_PASSED: t\n"), Some(M::AuditPassed));
    assert_eq!(
        one("---DELEGATION PROMPT START---\nAUDIT_PASSED: t\nx ---DELEGATION PROMPT END---\n"),
        Some(M::AuditPassed)
    );
}

#[test]
fn the_weightiest_decides_and_among_equals_the_last() {
    assert_eq!(one("READY_FOR_REVIEW: t\nTASK_INCOMPLETE: t\n"), Some(M::TaskIncomplete));
    assert_eq!(one("TASK_INCOMPLETE: t\nREADY_FOR_REVIEW: t\n"), Some(M::ReadyForReview));
    let order = [
        "READY_FOR_REVIEW: t",
        "FILE CONFLICT: f",
        "EXPERT_REQUEST",
        "SEEKING_DIVINE_CLARIFICATION",
        "AUDIT_BLOCKED: t",
        "INFRA_BLOCKED: t",
    ];
    let heads = |n: usize, reverse: bool| {
        let mut lines = order[..=n].to_vec();
        if reverse {
            lines.reverse();
        }
        lines.join("\n")
    };
    for (n, expected) in order.iter().enumerate().take(5) {
        for reverse in [false, true] {
            let decisive = scan(&heads(n, reverse)).decisive().unwrap().head();
            assert_eq!(decisive, *expected);
        }
    }
    assert_eq!(one(&heads(5, false)), Some(M::InfraBlocked));
    assert_eq!(one(&heads(5, true)), Some(M::AuditBlocked));
}

#[test]
fn experts_may_not_ask() {
    let found = scan("EXPERT_ADVICE: r1\nSEEKING_DIVINE_CLARIFICATION\nEXPERT_REQUEST\n");
    assert_eq!(found.decisive_from(Agent::Expert).map(|m| m.kind), Some(M::ExpertAdvice));
    assert_eq!(found.decisive_from(Agent::Developer).map(|m| m.kind), Some(M::SeekingDivineClarification));
    assert!(scan("EXPERT_REQUEST\n").decisive_from(Agent::Expert).is_none());
}

#[test]
fn bodies() {
    let text = "Some talk.\n\nAUDIT_FAILED: task-7\n\nFailed Criteria:\n- login works: FAILED - 500\n\nIssues Found:\n- src/a.rs:12: unwrap on input\n- src/b.rs: too long\n- it is slow\n\nRequired Fixes:\n1. handle the error\n2. split it\n\nVerification Results (self-verified):\n- unit tests (ci): PASS\n- e2e (local): FAIL\n  Exit: 1\n  Output: no server\n\nSummary: not yet\nhttps://example.com stays text\n";
    let found = scan(text);
    let marker = &found.markers[0];
    assert_eq!(marker.line, 3);
    insta::assert_json_snapshot!(marker);
    assert_eq!(
        marker.issues(),
        [
            Issue { file: Some("src/a.rs".into()), line: Some(12), text: "unwrap on input".into() },
            Issue { file: Some("src/b.rs".into()), line: None, text: "too long".into() },
            Issue { file: None, line: None, text: "it is slow".into() },
        ]
    );
    let check = |check: &str, environment: Option<&str>, passed, detail: &str| CheckResult {
        check: check.into(),
        environment: environment.map(Into::into),
        passed,
        detail: detail.into(),
    };
    assert_eq!(
        marker.checks(),
        [
            check("unit tests", Some("ci"), true, ""),
            check("e2e", Some("local"), false, "Exit: 1\nOutput: no server"),
            check("login works", None, false, "500"),
        ]
    );
    assert!(marker.warnings().is_empty(), "{:?}", marker.warnings());
}

#[test]
fn missing_field_is_a_warning() {
    let found = scan("REVIEW_FAILED: t\n\nIssues Found:\n\nPriority: URGENT\n");
    assert_eq!(
        found.markers[0].warnings(),
        [
            "`Files Reviewed` is missing",
            "`Issues Found` has no items",
            "`Required Fixes` is missing",
            "`Priority` is `URGENT`, not one of HIGH, MEDIUM, LOW"
        ]
    );
    let found = scan("REVIEW_FAILED: t\nPriority: high\n");
    assert_eq!(found.markers[0].priority(), Some(Level::High));
    let found = scan("FILE CONFLICT: a b.rs\nAssigned To: UNKNOWN\nCan Wait: no\n");
    assert_eq!((found.markers[0].assigned_to(), found.markers[0].can_wait()), (None, Some(false)));
}

/// Texts that are nearly markers, so that the rules are met often.
fn nearly() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        4 => prop::sample::select(MarkerKind::all().map(MarkerKind::name).collect::<Vec<_>>()).prop_map(str::to_owned),
        4 => (prop::sample::select(MarkerKind::all().map(MarkerKind::name).collect::<Vec<_>>()), "[ \t]{0,2}[a-z é]{0,6}")
            .prop_map(|(name, rest)| format!("{name}:{rest}")),
        2 => prop::sample::select(vec!["```", "~~~", "````", "```rust", "   ```", "--- x"]).prop_map(str::to_owned),
        2 => prop::sample::select(vec!["---DELEGATION PROMPT START---", "---DELEGATION PROMPT END---"]).prop_map(str::to_owned),
        2 => "(- |1\\. |  |Key: |Key:|Can Wait: )[a-zA-Z: ]{0,8}",
        1 => "\\PC{0,12}",
        1 => Just(String::new()),
    ];
    let end = prop::sample::select(vec!["\n", "\r\n", " \n", "\t\r\n"]);
    prop::collection::vec((line, end), 0..25)
        .prop_map(|lines| lines.into_iter().flat_map(|(line, end)| [line, end.to_owned()]).collect())
}

proptest! {
    #[test]
    fn anything_can_be_read(text in prop_oneof![nearly(), any::<String>()]) {
        let found = scan(&text);
        for marker in &found.markers {
            let line = text.split('\n').nth(marker.line - 1).expect("the line is there");
            prop_assert!(line.starts_with(marker.kind.name()));
            let _ = (marker.warnings(), marker.issues(), marker.checks(), marker.files(), marker.to_string());
        }
        prop_assert!(found.markers.windows(2).all(|pair| pair[0].line < pair[1].line));
        prop_assert!(found.markers.iter().all(|m| m.fenced) || found.markers.iter().all(|m| !m.fenced));
    }

    /// Without a marker's name at the start of a line there is nothing to find.
    #[test]
    fn no_name_no_marker(text in nearly()) {
        let plain: String = text.lines().map(|line| format!(".{line}\n")).collect();
        prop_assert_eq!(scan(&plain).handler(), Handler::RequestClarification);
    }

    #[test]
    fn markers_round_trip(text in nearly()) {
        for marker in scan(&text).markers {
            let written = marker.to_string();
            let again = scan(&written);
            prop_assert_eq!(again.markers.len(), 1, "{}", marker);
            prop_assert_eq!((again.markers[0].kind, &again.markers[0].subject), (marker.kind, &marker.subject));
            prop_assert_eq!(again.markers[0].body(), marker.body());
        }
    }

    #[test]
    fn line_endings_do_not_matter(text in nearly()) {
        let plain = text.replace('\r', "");
        let carriage = plain.replace('\n', "\r\n");
        prop_assert_eq!(scan(&plain), scan(&carriage));
        prop_assert_eq!(scan(&plain), scan(&text));
    }

    #[test]
    fn the_writer_writes_one_marker(
        at in 0_usize..19, subject in "[a-z0-9 ./-]{1,12}", value in nearly(), items in prop::collection::vec(nearly(), 0..3),
    ) {
        let kind = MarkerKind::all().nth(at).expect("nineteen");
        prop_assume!(!subject.trim().is_empty());
        let written = Writer::new(kind, &subject).line("Summary", &value).text("Context", &value)
            .items("Issues Found", items).delegation_prompt(&value).finish();
        let text = written.to_string();
        let found = scan(&text);
        prop_assert_eq!(found.markers.len(), 1, "{}", text);
        prop_assert_eq!(&found.markers[0], &written, "{}", text);
    }
}

#[test]
fn large_outputs_are_scanned_in_linear_time() {
    let words = [
        "```\n",
        "~~~\n",
        "PASS\n",
        "PASS: a\n",
        "FAIL: x\n- a\n",
        "`",
        " ",
        "\n",
        "---",
        "## Delegation\n",
        "PLAN_READY: a\n",
        "HEALTH_AUDIT",
        "a:\n",
    ];
    for word in words
        .iter()
        .map(|word| (*word).to_owned())
        .chain(MarkerKind::all().map(|kind| format!("{}: x\n", kind.name())))
    {
        let text = word.repeat(300_000 / word.len());
        let found = scan(&text);
        let _ = found.decisive().map(|marker| marker.body().sections().len());
    }
}
