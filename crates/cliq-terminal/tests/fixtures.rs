//! Runs, phases and reviews as a source would deliver them.

use cliq_protocol::{PhaseName, ReviewSpec, Timestamp};
use cliq_review::{Content, Diff, FileDiff, NewReview, Review};
use cliq_terminal::{
    ChangedPart, Changes, Effect, Event, InputOffer, Offers, PhaseRow, PhaseState, Reply, Request,
    ReviewDetail, RunDetail, RunKey, RunList, RunRow, RunStatus, State, TeamOffer, TextPart, Theme, render,
};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;

pub(crate) const NOW: i64 = 1_800_000_000_000;
const HOUR: i64 = 3_600_000;

pub(crate) fn time(ms: i64) -> Timestamp {
    Timestamp::from_unix_millis(ms)
}

pub(crate) fn run(id: &str, title: &str, status: RunStatus, hours_ago: i64) -> RunRow {
    let is_over = !status.is_active();
    RunRow {
        key: RunKey::new(id),
        id: format!("{id}-0000"),
        title: title.to_owned(),
        team: "@shop/web".to_owned(),
        project: "shop".to_owned(),
        place: "/work/shop".to_owned(),
        status,
        done: 2,
        all: 5,
        started: Some(time(NOW - hours_ago * HOUR - 192_000)),
        ended: is_over.then(|| time(NOW - hours_ago * HOUR)),
        tokens: 48_200,
        usd: Some(0.37),
        changed: Some("3 files, +42 -7".to_owned()),
        needs: None,
        words: None,
        is_last: true,
        is_on_server: false,
    }
}

pub(crate) fn runs() -> RunList {
    let mut asks = run("a", "Add a search field to the catalogue", RunStatus::Working, 0);
    asks.needs = Some("approval waits for ann".to_owned());
    let mut works = run("b", "Größe und 漢字 im Titel", RunStatus::Working, 0);
    works.words = Some("build: reading src/catalogue/search.rs".to_owned());
    let mut hostile = run("c", "\u{1b}[31mred \u{202e}evil\u{7} title", RunStatus::Failed, 1);
    hostile.is_on_server = true;
    let mut old = run("e", "Rename the crates", RunStatus::Cancelled, 50);
    old.is_last = false;
    RunList {
        runs: vec![
            asks,
            works,
            hostile,
            run("d", "Translate the help pages", RunStatus::CompletedWithCaveats, 2),
            old,
        ],
        today: Some(time(NOW - 8 * HOUR)),
        problems: Vec::new(),
        is_partial: false,
    }
}

pub(crate) fn phase(name: &str, layer: u32, state: PhaseState) -> PhaseRow {
    let is_started = state != PhaseState::Pending;
    PhaseRow {
        name: name.to_owned(),
        title: None,
        layer: Some(layer),
        depth: 0,
        kind: "standard".to_owned(),
        is_gate: false,
        is_support: false,
        state,
        iterations: u32::from(is_started),
        verdict: None,
        worked_ms: if is_started { 64_000 } else { 0 },
        since_ms: None,
        message: None,
        tokens: if is_started { 12_400 } else { 0 },
        review: None,
    }
}

pub(crate) const REVIEW: &str = "0123456789abcdef0123456789abcdef";

pub(crate) fn detail() -> RunDetail {
    let mut build = phase("build", 2, PhaseState::Completed);
    build.iterations = 2;
    let mut test = phase("test", 3, PhaseState::Completed);
    (test.kind, test.is_gate, test.iterations) = ("gate".to_owned(), true, 2);
    (test.verdict, test.message) = (Some("PASS".to_owned()), Some("14 of 14 tests pass".to_owned()));
    let mut approval = phase("approval", 4, PhaseState::Running);
    (approval.kind, approval.is_gate) = ("hug".to_owned(), true);
    (approval.since_ms, approval.review) = (Some(NOW - 90_000), Some(REVIEW.to_owned()));
    let mut item = phase("build.0", 2, PhaseState::Failed);
    (item.depth, item.layer, item.title) = (1, None, Some("catalogue".to_owned()));
    let mut support = phase("fixer", 9, PhaseState::Pending);
    (support.is_support, support.layer) = (true, None);
    RunDetail {
        phases: vec![
            phase("plan", 1, PhaseState::Completed),
            build,
            item,
            test,
            approval,
            phase("publish", 5, PhaseState::Pending),
            support,
        ],
        reason: None,
        remarks: vec!["limit: the run reached a limit".to_owned()],
        requirement: None,
    }
}

pub(crate) fn changes() -> Changes {
    let file = FileDiff {
        path: "src/search.rs".to_owned(),
        change: "modified".to_owned(),
        added: 2,
        removed: 1,
        hunks:
            "@@ -1,3 +1,4 @@\n fn find() {\n-    todo();\n+    let words = split();\n+    all(words)\n }\n"
                .to_owned(),
        ..FileDiff::default()
    };
    let gone = FileDiff {
        path: "old.txt".to_owned(),
        change: "deleted".to_owned(),
        removed: 1,
        hunks: "@@ -1 +0,0 @@\n-\u{1b}[2Jhostile\n".to_owned(),
        ..FileDiff::default()
    };
    let diffs = vec![Diff { repo: ".".to_owned(), files: vec![file, gone], more_files: 0 }];
    let review = Some(review(&diffs));
    let parts = diffs.into_iter().map(|diff| ChangedPart { title: None, diff }).collect();
    Changes { review, parts, remark: None }
}

pub(crate) fn review(diffs: &[Diff]) -> ReviewDetail {
    let spec = json!({"reviewer": "ann", "inputs": [
        {"name": "size", "label": "Size", "type": "select", "choices": ["small", "large"], "required": true},
        {"name": "note", "label": "Note", "type": "text", "required": true},
        {"name": "urgent", "label": "Urgent", "type": "boolean"},
    ]});
    let spec = ReviewSpec::from_value(spec).unwrap();
    let targets = ["plan", "build"].map(|name| PhaseName::parse(name).unwrap());
    let review = Review::new(NewReview {
        id: REVIEW.parse().unwrap(),
        project: "/work/shop".into(),
        team: "@shop/web".parse().unwrap(),
        title: Some("Add a search field".to_owned()),
        run_id: "a-0000".parse().unwrap(),
        phase: PhaseName::parse("approval").unwrap(),
        iteration: 1,
        max_iterations: 3,
        evaluation: 1,
        attempt: 1,
        reviewers: spec.reviewers.clone(),
        spec,
        route_targets: targets.to_vec(),
        channels: Vec::new(),
        links: Vec::new(),
        now: time(NOW - 90_000),
    });
    let brief = "Look at the search. Does it find words in any order?".to_owned();
    ReviewDetail {
        review,
        content: Content { brief: Some(brief), diffs: diffs.to_vec(), ..Content::default() },
    }
}

pub(crate) fn offers() -> Offers {
    let input = InputOffer {
        name: "language".to_owned(),
        help: Some("Language of the answers".to_owned()),
        default: Some("en".to_owned()),
        is_required: false,
        choices: Vec::new(),
    };
    let team = |name: &str, inputs: Vec<InputOffer>, missing: Vec<String>| TeamOffer {
        reference: Some(name.to_owned()),
        name: name.to_owned(),
        inputs,
        missing,
    };
    let assembled = TeamOffer { reference: None, ..team("@shop/web", Vec::new(), Vec::new()) };
    Offers {
        projects: vec!["/work/shop".to_owned(), "/work/site".to_owned()],
        assembled: [("/work/shop".to_owned(), assembled)].into(),
        teams: vec![
            team("@cliq/feature-dev", vec![input], Vec::new()),
            team("@cliq/docs", Vec::new(), vec!["the program `pandoc` is missing".to_owned()]),
        ],
    }
}

pub(crate) fn log() -> Vec<u8> {
    let mut log = Vec::new();
    for n in 0..40 {
        log.extend_from_slice(format!("2026-01-01 step {n} of the build\n").as_bytes());
    }
    log.extend_from_slice(b"\x1b[32mok\x1b[0m plain \x1b]0;title\x07\x1b[2J end\n\tindented \xff\xfe\n");
    log
}

/// Screen with a state, whose requests are answered from the fixtures at once.
pub(crate) struct Screen {
    pub(crate) state: State,
    pub(crate) effects: Vec<Effect>,
    pub(crate) list: RunList,
}

impl Screen {
    pub(crate) fn new(columns: u16, rows: u16) -> Self {
        Self::with(columns, rows, runs())
    }

    pub(crate) fn with(columns: u16, rows: u16, list: RunList) -> Self {
        let state = State::new(columns, rows, time(NOW));
        let mut screen = Self { state, effects: Vec::new(), list };
        screen.event(Event::Tick(time(NOW)));
        screen
    }

    /// Gives an event to the state, and answers its requests.
    pub(crate) fn event(&mut self, event: Event) {
        let mut effects = self.state.update(event);
        while let Some(effect) = effects.pop() {
            if let Effect::Load(request) = effect {
                let reply = self.reply(request);
                effects.extend(self.state.update(Event::Loaded(Box::new(reply))));
            } else {
                self.effects.push(effect);
            }
        }
    }

    fn reply(&self, request: Request) -> Reply {
        match request {
            Request::Runs => Reply::Runs(Ok(self.list.clone().into())),
            Request::Detail(run) => Reply::Detail(run, Ok(detail())),
            Request::Text(request) => {
                let bytes = log();
                let size = bytes.len() as u64;
                let wanted = request.find.clone();
                let part = match request.place {
                    // The fixture finds the first line that has the text.
                    _ if wanted.is_some() => {
                        let text = String::from_utf8_lossy(&bytes).into_owned();
                        let at = text
                            .find(&wanted.unwrap_or_default())
                            .map(|at| text[..at].rfind('\n').map_or(0, |end| end + 1));
                        let found = at.map(|at| at as u64);
                        TextPart {
                            file: "build.2.log".to_owned(),
                            files: Vec::new(),
                            start: 0,
                            bytes,
                            size,
                            found,
                        }
                    }
                    cliq_terminal::TextPlace::End => TextPart {
                        file: "build.2.log".to_owned(),
                        files: vec!["build.1.log".to_owned(), "build.2.log".to_owned()],
                        start: 0,
                        bytes,
                        size,
                        found: None,
                    },
                    _ => {
                        TextPart { file: "build.2.log".to_owned(), size, start: size, ..TextPart::default() }
                    }
                };
                Reply::Text(request, Ok(part))
            }
            Request::Changes(request) => Reply::Changes(request, Ok(changes())),
            Request::Review(run, id) => {
                let detail = changes().review.unwrap();
                Reply::Review(run, id, Ok(detail))
            }
            Request::Offers(_) => Reply::Offers(Ok(offers())),
        }
    }

    pub(crate) fn key(&mut self, code: KeyCode) {
        self.event(Event::Key(KeyEvent::new(code, KeyModifiers::NONE)));
    }

    pub(crate) fn keys(&mut self, text: &str) {
        for c in text.chars() {
            self.key(KeyCode::Char(c));
        }
    }

    pub(crate) fn submit(&mut self) {
        self.event(Event::Key(KeyEvent::new(KeyCode::Char('s'), KeyModifiers::CONTROL)));
    }

    /// Text of the screen.
    pub(crate) fn text(&self) -> String {
        self.text_with(Theme::new(true))
    }

    pub(crate) fn text_with(&self, theme: Theme) -> String {
        let (columns, rows) = self.state.size();
        if columns == 0 || rows == 0 {
            return String::new();
        }
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
        terminal.draw(|frame| render(frame, &self.state, theme)).unwrap();
        let buffer = terminal.backend().buffer();
        let mut text = String::new();
        for row in 0..rows {
            let mut line = String::new();
            let mut skip = 0;
            for column in 0..columns {
                let symbol = buffer[(column, row)].symbol();
                // A wide character fills the cell after it too.
                if skip > 0 {
                    skip -= 1;
                    continue;
                }
                skip = ratatui::text::Span::raw(symbol).width().saturating_sub(1);
                line.push_str(symbol);
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}
