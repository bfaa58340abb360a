//! Agents that misbehave (`fixtures/acp/agent.py`), as real processes.
//!
//! Each row of the table is a case of the agent, the behaviour of the caller, and the end. What is no success ends in a named failure;
//! what is tolerated is named, too. No process is left in any case.

#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use cliq_acp::client::{
    Anomaly, Client, Control, Host, Limits, Origin, PermissionDecision, PermissionReply, PermissionRequest,
    SessionRequest, SteerId, SteerOutcome, Update, UsageMeaning,
};
use cliq_acp::schema::ContentBlock;

/// Case, behaviour of the caller, end, and what else is named.
///
/// Behaviour: `short` has short deadlines, `mode` sets a mode, `resume` continues a conversation, `cancel` and `steer` act at the
/// first text, `late` waits long for what follows an answer, `twice` sends two prompts, `hold` leaves permissions open, `reject` refuses them.
type Row = (&'static str, &'static str, &'static str, &'static str);

#[rustfmt::skip]
const CASES: &[Row] = &[
    ("good", "", "completed", "said done"),
    ("good", "mode", "completed", ""),
    ("good", "twice", "completed", "then completed"),

    // Exits.
    ("exits-at-start", "", "start: the agent exited with code 3 in initialize: no such option", ""),
    ("prints-help-and-exits", "", "start: the agent exited with code 0 in initialize", "not a message: Usage"),
    ("exits-at-initialize", "", "start: the agent exited with code 4 in initialize", ""),
    ("exits-at-new", "", "start: the agent exited with code 5 in session/new", ""),
    ("exits-at-mode", "mode", "start: the agent exited with code 6 in the configuration", ""),
    ("exits-at-prompt", "", "the agent exited with code 7 in session/prompt", "said half of the work"),
    ("exits-with-zero-at-prompt", "", "the agent exited with code 0 in session/prompt", "said all done"),
    ("is-killed-at-prompt", "", "the agent exited by signal 9 in session/prompt", ""),
    ("exits-after-the-answer", "", "completed", "said done"),
    ("exits-after-the-answer", "twice", "completed", "then the agent exited with code 1"),
    ("exits-with-a-permission-open", "hold", "the agent exited with code 8", "withdrawn 1"),
    ("prints-secrets-and-exits", "", "code 9 in session/prompt: request with key [secret] failed", ""),
    ("floods-stderr-and-exits", "", "code 10 in session/prompt: line", "line 19999 of a long trace"),

    // Hangs.
    ("hangs-at-start", "short", "start: the agent did not answer initialize in time", ""),
    ("hangs-at-initialize", "short", "start: the agent did not answer initialize in time", ""),
    ("hangs-at-new", "short", "start: the agent did not answer session/new in time", ""),
    ("hangs-at-mode", "short mode", "start: the agent did not answer the configuration of the session in time", ""),
    ("hangs-at-prompt", "short", "the agent wrote nothing in session/prompt for longer", ""),
    ("hangs-in-the-middle", "short", "the agent wrote nothing in session/prompt for longer", "said half of"),
    ("hangs-after-cancel", "short cancel", "the agent did not answer session/cancel in time", ""),
    ("ignores-sigterm", "short cancel", "the agent did not answer session/cancel in time", ""),
    ("writes-noise-for-ever", "short", "start: the agent did not answer initialize in time", "not a message: still loading"),
    ("writes-noise-in-silence", "short", "the agent wrote nothing in session/prompt for longer", "not a message: still loading"),
    ("never-answers-but-talks", "short cancel", "the agent did not answer session/cancel in time", ""),

    // Answers to the calls of the start.
    ("version-two", "", "start: the agent speaks version 2", ""),
    ("version-text", "", "start: the agent's answer to initialize does not follow the protocol: `protocolVersion`", ""),
    ("initialize-null", "", "start: the agent's answer to initialize does not follow the protocol", ""),
    ("initialize-list", "", "start: the agent's answer to initialize does not follow the protocol", ""),
    ("initialize-error", "", "start: the agent answered initialize with an error: Internal error (-32603): no home", ""),
    ("initializes-twice", "", "completed", "ignored a repeated response to call 1"),
    ("capabilities-of-wrong-types", "", "completed", ""),
    ("new-error", "", "start: the agent answered session/new with an error", ""),
    ("sign-in-at-new", "", "start: the agent requires a sign-in", ""),
    ("session-without-id", "", "start: the agent's answer to session/new does not follow the protocol: `sessionId`", ""),
    ("session-with-number", "", "start: the agent's answer to session/new does not follow the protocol: `sessionId`", ""),
    ("session-null", "", "start: the agent's answer to session/new does not follow the protocol: `sessionId`", ""),
    ("session-of-wrong-types", "", "completed", ""),
    ("session-of-wrong-types", "mode", "start: the agent has no mode `plan`", ""),
    ("mode-refused", "mode", "start: the agent refused the mode `plan`: Invalid params", ""),
    ("lies-about-mode", "mode", "start: the agent accepted the mode `plan` and reports `ask`", ""),
    ("good", "resume", "start: the agent can neither resume nor load", ""),
    ("lies-about-resume", "resume", "completed", "offers session/resume and refused it"),
    ("lies-about-resume", "resume", "completed", "replayed 1; said done"),
    ("lies-about-resume-and-load", "resume", "start: the agent answered session/load with an error: Method not found", ""),
    ("replays-on-resume", "resume late", "completed", "replayed 2; said done"),

    // Answers to the prompt.
    ("stop-reason-unknown", "", "the agent ended its turn with the unknown stop reason `paused`", "said done"),
    ("stop-reason-number", "", "the agent's answer to session/prompt does not follow the protocol: `stopReason` is not a text", ""),
    ("stop-reason-null", "", "the agent's answer to session/prompt does not follow the protocol: `stopReason` is not a text", ""),
    ("stop-reason-missing", "", "the agent's answer to session/prompt does not follow the protocol: `stopReason` is missing", ""),
    ("prompt-null", "", "the agent's answer to session/prompt does not follow the protocol: `stopReason` is missing", ""),
    ("prompt-text", "", "the agent's answer to session/prompt does not follow the protocol: `stopReason` is missing", ""),
    ("end-turn-with-error-inside", "", "does not follow the protocol: it has a stop reason and an error", ""),
    ("end-turn-with-error-beside", "", "the agent answered session/prompt with an error: disk full", ""),
    ("error-of-wrong-type", "", "the agent answered session/prompt with an error: broken (-32603)", ""),
    ("prompt-error", "", "the agent answered session/prompt with an error: Internal error (-32603): model not found", ""),
    ("answers-with-secrets", "", "invalid key [secret] (-32603): [secret] is not valid", "not a message: using [secret]"),
    ("sign-in-at-prompt", "", "the agent requires a sign-in", ""),
    ("refusal", "", "the model refused to continue", ""),
    ("max-tokens", "", "the token limit of the model was reached", ""),
    ("max-turn-requests", "", "the agent's limit of model requests", ""),
    ("cancelled-unasked", "", "the turn was cancelled", ""),
    ("answers-without-result", "", "does not follow the protocol: the response has neither a result nor an error", ""),
    ("answers-with-wrong-id", "short", "the agent wrote nothing in session/prompt for longer", "response to call 503, which was never made"),
    ("answers-with-text-id", "short", "the agent wrote nothing in session/prompt for longer", "response to call \"3\", which was never made"),
    ("answers-with-float-id", "", "completed", ""),
    ("answers-twice", "late", "completed", "ignored a repeated response to call 3"),
    ("answers-before-the-text", "late", "completed", "said done"),
    ("answers-without-line-end", "", "completed", ""),
    ("answers-half-a-line", "", "the agent exited with code 0 in session/prompt", "an incomplete last line of"),
    ("answers-byte-by-byte", "", "completed", ""),
    ("writes-invalid-utf8", "", "completed", "said a\u{fffd}\u{fffd}b"),

    // Lines and updates.
    ("noise", "", "completed", "not a message: Loading plugins"),
    ("noise", "", "completed", "the line is a batch of messages"),
    ("blank-lines", "", "completed", "said done"),
    ("deep-nesting", "", "completed", "not a message: [[[["),
    ("half-object", "", "completed", "not a message: {"),
    ("ids-of-wrong-types", "", "completed", "the id has the wrong type"),
    ("methods-of-wrong-types", "", "completed", "the method is not a text"),
    ("responses-to-nothing", "", "completed", "response to call 999, which was never made"),
    ("other-session", "", "completed", "message of another session `other`; replayed 0; said done"),
    ("updates-of-wrong-types", "", "completed", "invalid parameters: `update` is missing"),
    ("updates-unknown", "", "completed", "unknown update `mood`"),
    ("tools-unknown", "", "completed", "2 tools"),
    ("notifications-unknown", "", "completed", ""),

    // Cancellation and steering.
    ("ends-turn-after-cancel", "cancel", "the turn was cancelled", ""),
    ("fails-after-cancel", "cancel", "the agent answered session/cancel with an error", ""),
    ("cancels-with-an-error", "cancel", "the turn was cancelled", ""),
    ("asks-after-cancel", "cancel", "the turn was cancelled", ""),
    ("good", "steer", "completed", "steered No"),
    ("steering-refused", "steer", "completed", "steered Refused(\"Method not found"),
    ("steering-injected", "steer", "completed", "steered Injected"),
    ("steering-unanswered", "steer", "completed", "steered Unanswered"),
    ("steering-late", "steer twice", "completed", "ignored a late response"),

    // Permissions and questions.
    ("asks", "", "completed", "said {\"outcome\": \"selected\", \"optionId\": \"once\"}"),
    ("asks", "reject", "completed", "said {\"outcome\": \"selected\", \"optionId\": \"no\"}"),
    ("asks", "hold cancel", "the turn was cancelled", "withdrawn 1"),
    ("asks-without-once", "", "completed", "no option of kind `allow_once`; answered with `cancelled`; replayed 0; said cancelled"),
    ("asks-without-options", "", "completed", "said -32602"),
    ("asks-nonsense", "", "completed", "said -32602"),
    ("asks-twice-with-one-id", "", "completed", "allowed 2"),
    ("asks-and-ends", "hold", "completed", "withdrawn 1"),
    ("asks-after-the-end", "late", "completed", "answered a permission outside of a turn with `cancelled`"),
    ("asks-and-withdraws", "hold", "completed", "said -32800; withdrawn 1"),
    ("floods-permissions", "hold", "completed", "refused a permission: too many are open"),
    ("asks-a-question-unoffered", "", "completed", "said decline"),
    ("asks-for-a-page", "", "completed", "said decline"),
    ("writes-files-unoffered", "", "completed", "refused a call of `fs/write_text_file`, which is not offered"),

    // Floods.
    ("floods-updates", "", "completed", "100000 updates"),
    ("floods-noise", "", "completed", "not a message: no message; replayed 0; said done"),
    ("floods-unknown-methods", "", "completed", "refused a call of `vendor/method-0`"),
    ("floods-and-never-reads", "", "the agent does not read its input", ""),
    ("writes-a-line-of-one-megabyte", "", "completed", "said xxx"),
    ("writes-a-line-of-17-megabytes", "", "the agent wrote a line of 170001", "the limit is 16777216"),
    ("writes-a-line-of-a-million-values", "", "the agent wrote a line of more than 500000 JSON values in session/prompt", ""),
    ("writes-17-megabytes-of-text", "", "the agent wrote more than 16777216 bytes of text", ""),
    ("writes-a-line-without-end", "short", "the agent wrote nothing in session/prompt for longer", ""),

    // Pipes and processes.
    ("closes-output", "", "the agent closed its output in session/prompt", ""),
    ("closes-input", "", "the agent closed its input in session/prompt", ""),
    ("leaves-a-child-that-holds-the-output", "", "completed", "killed processes that the agent left behind"),
    ("dies-while-a-child-holds-the-output", "", "the agent exited with code 11 in session/prompt", "killed processes"),
    ("leaves-a-child-that-ignores-sigterm", "", "completed", "killed processes that the agent left behind"),
    ("leaves-a-child-in-its-own-session", "", "completed", "killed processes that the agent left behind"),
    ("leaves-a-daemon", "", "completed", "killed processes that the agent left behind"),
    ("forks-a-talking-child-and-dies", "", "the agent exited with code 12 in session/prompt", "killed processes"),
    ("forks-when-terminated", "short cancel patient", "the agent did not answer session/cancel in time", "killed processes"),
];

const SECRET: &str = "sk-1234567890-secret";
/// Variable that marks the processes of a case.
pub(crate) const CASE: &str = "CLIQ_ACP_TEST_CASE";

/// Caller that does what its words say.
struct Caller {
    words: BTreeSet<&'static str>,
    control: Control,
    has_acted: bool,
    held: Vec<PermissionReply>,
    updates: usize,
    replayed: usize,
    withdrawn: usize,
    steered: Vec<SteerOutcome>,
    anomalies: Vec<String>,
}

impl Caller {
    fn act(&mut self) {
        if std::mem::replace(&mut self.has_acted, true) {
            return;
        }
        if self.words.contains("cancel") {
            self.control.cancel();
        }
        if self.words.contains("steer") {
            self.control.steer("And then?");
        }
    }
}

impl Host for Caller {
    fn update(&mut self, origin: Origin, update: &Update) {
        match (origin, update) {
            (Origin::Turn, Update::Answer(_)) => {
                self.updates += 1;
                self.act();
            }
            (Origin::Replay, Update::Answer(_)) => self.replayed += 1,
            _ => {}
        }
    }

    fn permission(&mut self, _request: &PermissionRequest, reply: PermissionReply) {
        if self.words.contains("hold") {
            self.held.push(reply);
            self.act();
        } else if self.words.contains("reject") {
            reply.send(PermissionDecision::Reject);
        } else {
            reply.send(PermissionDecision::Allow);
        }
    }

    fn withdrawn(&mut self, _id: cliq_acp::client::AskId) {
        self.withdrawn += 1;
    }

    fn steered(&mut self, _id: SteerId, outcome: &SteerOutcome) {
        self.steered.push(outcome.clone());
    }

    fn anomaly(&mut self, anomaly: &Anomaly) {
        let text = anomaly.to_string();
        if !self.anomalies.contains(&text) {
            self.anomalies.push(text);
        }
    }
}

fn limits(words: &BTreeSet<&str>, end: &str) -> Limits {
    let (long, short) = (Duration::from_secs(120), Duration::from_secs(3));
    let step = if words.contains("short") { short } else { long };
    // Only a case that ends in its start may run out of time there, and not before the agent has begun: a busy machine starts programs slowly.
    let begun = Duration::from_secs(30);
    let start = if end.starts_with("start: ") { step.max(begun) } else { long };
    let grace = if words.contains("late") { short } else { Duration::from_millis(50) };
    Limits {
        start,
        silence: Some(step),
        cancel: step,
        // A program that is started as the agent ends takes its time to begin on a busy machine. The wait is over once the agent is gone.
        terminate: if words.contains("patient") { begun } else { Duration::from_millis(500) },
        usage: grace,
        replay: grace,
        input: 1 << 20,
        ..Limits::default()
    }
}

/// Runs a case and returns what a caller sees of it.
async fn run(case: &str, words: &'static str, end: &str, mark: &str) -> (String, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/acp/agent.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(case).env(CASE, mark).env("AGENT_API_KEY", SECRET);
    let words: BTreeSet<&str> = words.split_whitespace().collect();
    let request = SessionRequest {
        cwd: "/work".into(),
        mode: words.contains("mode").then(|| "plan".into()),
        resume: words.contains("resume").then(|| "s".into()),
        usage: UsageMeaning::Turn,
        ..SessionRequest::default()
    };
    let client = Client::new(command, request).with_limits(limits(&words, end));
    let mut caller = Caller {
        control: client.control(),
        has_acted: false,
        held: Vec::new(),
        updates: 0,
        replayed: 0,
        withdrawn: 0,
        steered: Vec::new(),
        anomalies: Vec::new(),
        words,
    };
    let mut session = match client.start(&mut caller).await {
        Ok(session) => session,
        Err(error) => return (format!("start: {error}"), caller.anomalies.join("; ")),
    };
    let prompt = || vec![ContentBlock::from("Work.")];
    let report = session.prompt(prompt(), &mut caller).await;
    let second = match caller.words.contains("twice") {
        true => format!("; then {}", session.prompt(prompt(), &mut caller).await.outcome),
        false => String::new(),
    };
    session.end(&mut caller).await;
    let answer: String = report.answer().chars().take(100).collect();
    let mut named = caller.anomalies.join("; ");
    write!(
        named,
        "; replayed {}; said {answer}; withdrawn {}; steered {:?}; allowed {}; {} tools; {} updates{second}",
        caller.replayed,
        caller.withdrawn,
        caller.steered,
        report.decisions.allowed,
        report.tool_calls,
        caller.updates
    )
    .unwrap();
    let named = named.replace("steered [", "steered ");
    (report.outcome.to_string(), named)
}

/// Whether a living process has the mark. A process that was killed may take a moment.
pub(crate) fn is_left(mark: &str) -> bool {
    let entry = format!("{CASE}={mark}");
    let deadline = Instant::now() + Duration::from_secs(30);
    while Instant::now() < deadline {
        let left = std::fs::read_dir("/proc").unwrap().flatten().any(|process| {
            let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|found| found == entry.as_bytes())
        });
        if !left {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

fn check(number: usize, (case, words, end, named): Row) -> Result<(), String> {
    let mark = format!("{}-{number}", std::process::id());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (outcome, details) = runtime.block_on(run(case, words, end, &mark));
    let has_secret = outcome.contains(SECRET) || details.contains(SECRET);
    let problem = if !outcome.contains(end) {
        format!("ends with {outcome:?}, expected {end:?}")
    } else if !details.contains(named) && !outcome.contains(named) {
        format!("names {details:?}, expected {named:?}")
    } else if has_secret {
        "shows a secret".to_owned()
    } else if is_left(&mark) {
        "left a process".to_owned()
    } else {
        return Ok(());
    };
    Err(format!("{case} ({words}): {problem}"))
}

#[test]
fn misbehaving_agents_end_in_named_failures_and_leave_no_process() {
    assert!(CASES.len() >= 50);
    let (rows, problems) = (Mutex::new(CASES.iter().copied().enumerate()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((number, row)) = { rows.lock().unwrap().next() } {
                    if let Err(problem) = check(number, row) {
                        problems.lock().unwrap().push(problem);
                    }
                }
            });
        }
    });
    let problems = problems.into_inner().unwrap();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
