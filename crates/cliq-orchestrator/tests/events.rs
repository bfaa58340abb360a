//! Wire formats of a run's events and its view.

use std::fmt::Write;
use std::sync::Arc;

use cliq_orchestrator::internals::Input;
use cliq_orchestrator::{
    DecisionKind, PipelineStatus, Record, RecordedBudgets, RunEvent, RunView, SkipReason, ValidatedWorkflow,
};
use cliq_protocol::{
    Budget, ChangedLines, CommandResult, Form, Limited, PhaseName, RunId, Timestamp, Usage, WaitingReview,
    WireTime,
};
use cliq_workflow::{FailureCause, NoFiles, check};
use serde_json::json;

fn fixed(yml: &str) -> Arc<ValidatedWorkflow> {
    Arc::new(check(&format!("name: \"@t/t\"\nworkflow:\n{yml}"), &NoFiles).workflow.expect("valid"))
}

#[test]
fn events_are_pinned() {
    let name = |text: &str| PhaseName::parse(text).expect("a name");
    let verdict = cliq_protocol::Verdict::route(name("dev"), "red");
    let mut failed = CommandResult::new("tests", false);
    failed.exit_code = Some(1);
    let mut budgets = RecordedBudgets::default();
    budgets.run = Budget { tokens: Some(1000), usd: Some(2.5) };
    budgets.phases = [(name("dev"), Budget { tokens: Some(10), usd: None })].into();
    budgets.models = vec![name("dev")];
    let events = [
        RunEvent::RunStarted {
            version: 1,
            run_id: RunId::parse("r1").expect("an id"),
            team: "@t/t".into(),
            title: Some("A title".into()),
            phase_count: Some(3),
            cliq_version: "0.1.0".into(),
            pid: 7,
            max_parallel: Some(2),
            inputs: [("a".to_owned(), "b".to_owned())].into(),
            shape: "s".into(),
            budgets: budgets.clone(),
            agent_models: [("claude-api".to_owned(), ["m".to_owned()].into())].into(),
            trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().ok(),
            kept: serde_json::from_value(serde_json::json!([
                {"phase": "p", "kind": "standard", "run_id": "r0", "status": "completed"},
                {"phase": "q", "kind": "exec", "run_id": "r0", "status": "completed", "items": [1, 2, 3],
                 "skipped": [1], "failed": [{"index": 2, "reason": "no"}]},
                {"phase": "g", "kind": "gate", "run_id": "r0", "status": "completed",
                 "results": [{"name": "t", "pass": true}], "answer": {"verdict": "PASS"}},
                {"phase": "s", "kind": "exec", "run_id": "r0", "status": "skipped"},
            ]))
            .unwrap(),
        },
        RunEvent::RunInterrupted,
        RunEvent::RunResumed {
            cliq_version: "0.1.0".into(),
            pid: 9,
            max_parallel: None,
            from: Some(name("dev")),
            budgets: RecordedBudgets::default(),
        },
        RunEvent::PhaseStarted {
            phase: name("dev"),
            kind: cliq_protocol::PhaseKind::Standard,
            iteration: 2,
            routed_by: Some(name("gate")),
        },
        RunEvent::AgentStarted { phase: name("dev"), iteration: 2, agent: "x".into(), pid: Some(8) },
        RunEvent::CommandStarted { phase: name("gate"), command: "tests".into() },
        RunEvent::CommandFinished { phase: name("gate"), result: failed.clone() },
        RunEvent::CommandsFinished {
            phase: name("gate"),
            iteration: 1,
            results: vec![failed],
            max_iterations: Some(3),
            reported: false,
        },
        RunEvent::Progress { phase: name("dev"), message: "half".into() },
        RunEvent::UsageReported {
            phase: name("dev"),
            usage: Usage { tokens_in: 12, tokens_out: 3, cost_usd: Some(0.5), ..Usage::default() },
            is_final: true,
        },
        RunEvent::ReviewWaits {
            phase: name("dev"),
            iteration: 2,
            review: WaitingReview {
                id: "0123456789abcdef0123456789abcdef".into(),
                reviewers: vec!["ann".into()],
                since: Timestamp::UNIX_EPOCH.into(),
                due: None,
                others: Vec::new(),
                until: Timestamp::from_unix_millis(86_400_000).into(),
                page: None,
                route_targets: vec![name("dev")],
                inputs: Form::default(),
                asks: None,
                answer: None,
            },
        },
        RunEvent::ReviewWaits {
            phase: name("dev"),
            iteration: 2,
            review: WaitingReview {
                id: "0123456789abcdef0123456789abcdef".into(),
                reviewers: Vec::new(),
                since: Timestamp::UNIX_EPOCH.into(),
                due: None,
                others: Vec::new(),
                until: Timestamp::from_unix_millis(86_400_000).into(),
                page: None,
                route_targets: Vec::new(),
                inputs: Form::default(),
                asks: Some("claude-agent asks for permission: execute: cargo test".into()),
                answer: Some("ann allowed it once".into()),
            },
        },
        RunEvent::ReviewIdle {
            phase: name("dev"),
            review: "0123456789abcdef0123456789abcdef".into(),
            others: vec!["fedcba9876543210fedcba9876543210".into()],
            due: Some(Timestamp::from_unix_millis(3_600_000).into()),
        },
        RunEvent::ReviewIdle { phase: name("dev"), review: "r".into(), others: Vec::new(), due: None },
        RunEvent::RunParked {
            on: vec!["0123456789abcdef0123456789abcdef".into()],
            until: Timestamp::from_unix_millis(3_600_000).into(),
        },
        RunEvent::SteeringReceived {
            id: "m1".into(),
            from: "ann".into(),
            text: "Use PostgreSQL.".into(),
            phase: Some(name("dev")),
        },
        RunEvent::SteeringReceived { id: "m2".into(), from: "ann".into(), text: "All.".into(), phase: None },
        RunEvent::SteeringDelivered { id: "m1".into(), phase: name("dev"), activation: 2 },
        RunEvent::NotifyRequested { phase: Some(name("dev")), agent: "slack".into(), about: "help".into() },
        RunEvent::AgentCompleted { phase: name("dev"), result: Some(json!({"n": 1})) },
        RunEvent::WorkFailed {
            phase: name("dev"),
            reason: "died".into(),
            output_tail: Some("ouch\n".into()),
            log_file: Some("logs/dev.1.log".into()),
            cause: Some(FailureCause::Exit),
            limited: None,
        },
        RunEvent::WorkFailed {
            phase: name("dev"),
            reason: "stopped at max_turns (3)".into(),
            output_tail: None,
            log_file: None,
            cause: None,
            limited: Some(Limited::new("max_turns", 3)),
        },
        RunEvent::Verdict {
            gate: name("gate"),
            iteration: 1,
            max_iterations: 3,
            verdict,
            failing: vec!["lint".into()],
        },
        RunEvent::VerdictRejected { gate: name("gate"), iteration: 1, reason: "none".into() },
        RunEvent::PhaseDecided {
            phase: name("dev"),
            kind: cliq_protocol::PhaseKind::Standard,
            decision: DecisionKind::Items,
            items: vec![json!({"file": "a.rs"}), json!("b")],
            skipped: vec![1],
            reason: None,
            expressions: [("for_each".to_owned(), "handoff.plan.tasks".to_owned())].into(),
            values: json!({"handoff.plan": {"tasks": [{"file": "a.rs"}, "b"]}})
                .as_object()
                .cloned()
                .unwrap_or_default(),
        },
        RunEvent::PhaseSkipped {
            phase: name("dev"),
            kind: cliq_protocol::PhaseKind::Exec,
            reason: SkipReason::Condition,
        },
        RunEvent::ItemsStarted { phase: name("dev"), items: 2, starting: 1 },
        RunEvent::ItemFailed { phase: name("dev").with_item(1), reason: "died".into() },
        RunEvent::RetryScheduled {
            phase: name("dev").with_item(0),
            attempt: 2,
            attempts: 3,
            delay_ms: 90_000,
            reason: "died".into(),
        },
        RunEvent::RetryDelayed { phase: name("dev"), until: WireTime::from_text("2026-11-24T10:00:00Z") },
        RunEvent::RetryDue { phase: name("dev") },
        RunEvent::MergeConflict {
            phase: name("dev"),
            item: 3,
            files: vec!["a.rs".into()],
            notes: Vec::new(),
        },
        RunEvent::ItemsMerged {
            phase: name("dev"),
            conflict: Some(3),
            files: vec!["a.rs".into(), "b".into()],
            notes: vec!["a.rs".into(), "b (binary file, changed on both sides)".into()],
            reason: None,
        },
        RunEvent::ItemsMerged {
            phase: name("dev"),
            conflict: None,
            files: Vec::new(),
            notes: Vec::new(),
            reason: None,
        },
        RunEvent::PhaseCompleted { phase: name("dev") },
        RunEvent::PhaseEscalated { phase: name("dev"), reason: "died".into() },
        RunEvent::PhaseReset { phase: name("dev") },
        RunEvent::PhaseStopped { phase: name("dev") },
        RunEvent::Draining { running: vec![name("dev")] },
        RunEvent::WorkspaceChanged {
            phase: name("dev"),
            changed: ChangedLines { files: 1, lines_added: 120, lines_removed: 4 },
        },
        RunEvent::Warning { phase: None, message: "odd".into() },
        RunEvent::CompletionContradicted {
            phase: name("dev"),
            reason: "agent x completed and then ended with exit status 1".into(),
        },
        RunEvent::CancelRequested { by: "cliq cancel".into() },
        RunEvent::OrchestratorFailed { reason: "no disk".into() },
        RunEvent::RunFinished {
            status: PipelineStatus::Escalated,
            reason: Some("why".into()),
            phase: Some(name("dev")),
        },
    ];
    let mut text = String::new();
    for event in events {
        let record = Record::new(Timestamp::from_unix_millis(1_780_034_654_222), event);
        let line = record.encode();
        assert_eq!(Record::decode(&line).unwrap(), record);
        let _ = writeln!(text, "{}    {}", String::from_utf8(line).unwrap(), record.event.describe());
    }
    insta::assert_snapshot!(text);
}

#[test]
fn the_view_counts_time_and_iterations() {
    let workflow = fixed("  phases:\n    - {name: dev, type: standard}\n");
    let mut view = RunView::new(&workflow);
    let dev = PhaseName::parse("dev").unwrap();
    let mut at = |ms: i64, event: RunEvent| view.apply(&Record::new(Timestamp::from_unix_millis(ms), event));
    let started = || RunEvent::PhaseStarted {
        phase: dev.clone(),
        kind: cliq_protocol::PhaseKind::Standard,
        iteration: 1,
        routed_by: None,
    };
    at(1000, started());
    at(1500, RunEvent::PhaseCompleted { phase: dev.clone() });
    at(5000, started());
    at(5250, RunEvent::PhaseCompleted { phase: dev.clone() });
    assert_eq!((view.phases[0].iterations, view.phases[0].duration_ms), (2, 750));
}

#[test]
fn the_view_sums_usage_over_activations() {
    let workflow = fixed("  phases:\n    - {name: dev, type: standard}\n");
    let mut view = RunView::new(&workflow);
    let dev = PhaseName::parse("dev").unwrap();
    assert_eq!(view.usage(), None);
    let mut apply = |event| view.apply(&Record::new(Timestamp::UNIX_EPOCH, event));
    let usage = |tokens_in| RunEvent::UsageReported {
        phase: dev.clone(),
        usage: Usage { tokens_in, cost_usd: Some(0.5), ..Usage::default() },
        is_final: false,
    };
    let started =
        || RunEvent::AgentStarted { phase: dev.clone(), iteration: 1, agent: "a".into(), pid: None };
    // Within an activation a report replaces the one before; activations add up.
    for event in [started(), usage(10), usage(30), started(), usage(5), usage(6)] {
        apply(event);
    }
    let usage = view.usage().expect("usage");
    assert_eq!((usage.tokens_in, usage.cost_usd), (36, Some(1.0)));
    assert_eq!(serde_json::to_value(&view).unwrap()["phases"][0]["usage"]["tokens_in"], 36);
}

#[test]
fn agent_without_a_readable_time_is_not_idle() {
    let workflow = fixed("  phases:\n    - {name: a, type: hug, review: {reviewer: ann}}\n");
    let phase = PhaseName::parse("a").expect("a name");
    let idle = |due: Option<&str>| {
        let due = due.map(WireTime::from_text);
        let event =
            RunEvent::ReviewIdle { phase: phase.clone(), review: "r".into(), others: Vec::new(), due };
        match event.as_input(&workflow) {
            Some(Input::PhaseWaits { wait, .. }) => wait.map(|wait| wait.due_ms),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(idle(Some("1970-01-01T00:00:01.500Z")), Some(1500));
    assert_eq!((idle(Some("soon")), idle(None)), (None, None));
}
