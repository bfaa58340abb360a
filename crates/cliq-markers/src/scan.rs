//! Finding markers in a text, in one pass.

use std::borrow::Cow;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use aho_corasick::packed::Searcher;
use memchr::{memchr, memchr_iter, memmem};
use serde::Serialize;

use crate::body::{Body, trim_end};
use crate::kind::{Agent, Handler, MarkerKind, Subject};

const HEALTH_AUDIT: &str = "HEALTH_AUDIT:";
const PROMPT_START: &str = "---DELEGATION PROMPT START---";
const PROMPT_END: &str = "---DELEGATION PROMPT END---";

/// A marker in a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Marker<'a> {
    /// Kind of the marker.
    pub kind: MarkerKind,
    /// The rest of its line, as in `FILE CONFLICT: the subject`; empty where it takes none.
    pub subject: Cow<'a, str>,
    /// The line that it is on, the first one being 1.
    pub line: usize,
    /// Whether it stands in a code fence.
    pub fenced: bool,
    body: Body<'a>,
}

/// A line that begins with a marker's name and is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Malformed {
    /// The line that it is on, the first one being 1.
    pub line: usize,
    /// Name with which the text begins.
    pub name: &'static str,
    /// Problem of the text.
    pub why: &'static str,
}

/// Markers of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Scan<'a> {
    /// The markers that count, in order of appearance: those outside of code fences, or if there are none outside, those
    /// inside.
    pub markers: Vec<Marker<'a>>,
    /// Texts that look like markers and do not count.
    pub malformed: Vec<Malformed>,
}

impl<'a> Marker<'a> {
    /// Returns the first word of the subject, or `None` for kinds without a subject.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.subject.split_ascii_whitespace().next()
    }

    /// Returns the action of a coordinator.
    #[must_use]
    pub fn handler(&self) -> Handler {
        self.kind.handler()
    }

    /// The lines after it, up to the next marker.
    #[must_use]
    pub fn body(&self) -> &Body<'a> {
        &self.body
    }

    pub(crate) fn new(kind: MarkerKind, subject: String, body: Body<'a>) -> Self {
        Self { kind, subject: Cow::Owned(subject), line: 1, fenced: false, body }
    }

    /// The same, independent of the text that it was found in.
    #[must_use]
    pub fn into_owned(self) -> Marker<'static> {
        Marker {
            kind: self.kind,
            subject: Cow::Owned(self.subject.into_owned()),
            line: self.line,
            fenced: self.fenced,
            body: self.body.into_owned(),
        }
    }

    /// The marker's own line.
    #[must_use]
    pub fn head(&self) -> String {
        match self.kind.subject() {
            Subject::None => self.kind.name().to_owned(),
            Subject::Named(_) => format!("{}: {}", self.kind.name(), self.subject),
        }
    }
}

/// As it is written: reading it gives the same marker.
impl std::fmt::Display for Marker<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.head())?;
        let lines = self.body.lines();
        if !lines.is_empty() {
            writeln!(f)?;
        }
        lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl<'a> Scan<'a> {
    /// The marker that decides: the weightiest, and among equals the last in the text. `None` if there is none, which
    /// is [`Handler::RequestClarification`].
    #[must_use]
    pub fn decisive(&self) -> Option<&Marker<'a>> {
        // The last of the least.
        self.markers.iter().rev().min_by_key(|marker| marker.kind.priority())
    }

    /// As [`Self::decisive`], among those that an agent of this kind may say.
    #[must_use]
    pub fn decisive_from(&self, agent: Agent) -> Option<&Marker<'a>> {
        let allowed = self.markers.iter().rev().filter(|marker| marker.kind.is_allowed_by(agent));
        allowed.min_by_key(|marker| marker.kind.priority())
    }

    /// As [`Self::decisive_from`], of an agent that failed: its markers of success do not count.
    #[must_use]
    pub fn decisive_from_failed(&self, agent: Agent) -> Option<&Marker<'a>> {
        let counting =
            |marker: &&Marker<'a>| marker.kind.is_allowed_by(agent) && !marker.kind.claims_success();
        self.markers.iter().rev().filter(counting).min_by_key(|marker| marker.kind.priority())
    }

    /// Returns the action of a coordinator on the whole text.
    #[must_use]
    pub fn handler(&self) -> Handler {
        self.decisive().map_or(Handler::RequestClarification, Marker::handler)
    }
}

/// Finds all markers of a text. Takes time and memory in proportion to its length.
#[must_use]
pub fn scan(text: &str) -> Scan<'_> {
    let mut scanner = Scanner { text, ..Scanner::default() };
    let bytes = text.as_bytes();
    // Nearly all of a text is none of these, and nearly all of them are within lines.
    WORDS.each(bytes, |at| {
        // A fence may be indented.
        let start = at - bytes[..at].iter().rev().take(4).take_while(|byte| **byte == b' ').count();
        if start == 0 || bytes[start - 1] == b'\n' {
            let end = memchr(b'\n', &bytes[at..]).map_or(text.len(), |length| at + length);
            scanner.line(start, end);
        }
    });
    scanner.finish()
}

/// Finds what lines that matter begin with: markers, fences, a delegation prompt.
enum LineStarts {
    /// By vector instructions.
    Packed(Searcher),
    /// Plain search, for processors without the needed instructions.
    Plain(AhoCorasick),
}

static WORDS: LazyLock<LineStarts> = LazyLock::new(|| {
    let names = MarkerKind::all().map(|kind| match kind.subject() {
        Subject::None => kind.name().to_owned(),
        Subject::Named(_) => format!("{}:", kind.name()),
    });
    let names = names.filter(|name| !name.starts_with(HEALTH_AUDIT)).chain([HEALTH_AUDIT.to_owned()]);
    let words: Vec<String> = names.chain(["```", "~~~", PROMPT_START].map(str::to_owned)).collect();
    Searcher::new(&words).map_or_else(
        || LineStarts::Plain(AhoCorasick::new(&words).expect("a few short literals are within every limit")),
        LineStarts::Packed,
    )
});

impl LineStarts {
    fn each(&self, text: &[u8], mut found: impl FnMut(usize)) {
        match self {
            Self::Packed(searcher) => searcher.find_iter(text).for_each(|word| found(word.start())),
            Self::Plain(searcher) => searcher.find_iter(text).for_each(|word| found(word.start())),
        }
    }
}

#[derive(Debug, Default)]
struct Scanner<'a> {
    text: &'a str,
    /// The fence that is open: its byte, its length.
    fence: Option<(u8, usize)>,
    /// Up to here a delegation prompt reaches.
    prompt_end: usize,
    /// No further prompt ends.
    no_prompts: bool,
    /// Up to here newlines were counted, and how many there were.
    counted: usize,
    newlines: usize,
    candidates: Vec<Candidate<'a>>,
    malformed: Vec<(bool, Malformed)>,
}

#[derive(Debug)]
struct Candidate<'a> {
    kind: MarkerKind,
    subject: &'a str,
    number: usize,
    start: usize,
    /// Offset of the lines after the marker.
    after: usize,
    fenced: bool,
    /// End of the fence, once it is known.
    fence_end: Option<usize>,
}

impl<'a> Scanner<'a> {
    fn line(&mut self, start: usize, end: usize) {
        if start < self.prompt_end {
            return;
        }
        let line = trim_end(&self.text[start..end]);
        match line.as_bytes().first() {
            Some(b' ' | b'`' | b'~') => self.fence(line, start),
            Some(b'-') if line == PROMPT_START => self.prompt(end),
            Some(b'-') | None => {}
            Some(_) => self.marker(line, start, end),
        }
    }

    /// The number of the line that begins at `start`, which is never before the one that was asked for last.
    fn number(&mut self, start: usize) -> usize {
        self.newlines += memchr_iter(b'\n', &self.text.as_bytes()[self.counted..start]).count();
        self.counted = start;
        self.newlines + 1
    }

    fn fence(&mut self, line: &str, start: usize) {
        let bare = line.trim_start_matches(' ');
        let Some(byte @ (b'`' | b'~')) = bare.bytes().next() else { return };
        let length = bare.bytes().take_while(|b| *b == byte).count();
        if line.len() - bare.len() > 3 || length < 3 {
            return;
        }
        let rest = &bare[length..];
        match self.fence {
            None if byte == b'~' || !rest.contains('`') => self.fence = Some((byte, length)),
            Some((open, least)) if open == byte && length >= least && rest.trim().is_empty() => {
                self.fence = None;
                for candidate in
                    self.candidates.iter_mut().rev().take_while(|c| c.fenced && c.fence_end.is_none())
                {
                    candidate.fence_end = Some(start);
                }
            }
            _ => {}
        }
    }

    /// A prompt without an end is not a prompt: nothing of what follows is to be lost by it.
    fn prompt(&mut self, end: usize) {
        let mut from = end;
        while !self.no_prompts {
            let rest = &self.text[from..];
            match memmem::find(rest.as_bytes(), PROMPT_END.as_bytes()) {
                None => self.no_prompts = true,
                Some(at) => {
                    let at = from + at;
                    let line_end = memchr(b'\n', &self.text.as_bytes()[at..])
                        .map_or(self.text.len(), |length| at + length);
                    let starts_line = at == 0 || self.text.as_bytes()[at - 1] == b'\n';
                    if starts_line && trim_end(&self.text[at..line_end]) == PROMPT_END {
                        self.prompt_end = line_end;
                        return;
                    }
                    from = at + PROMPT_END.len();
                }
            }
        }
    }

    fn marker(&mut self, line: &'a str, start: usize, end: usize) {
        let fenced = self.fence.is_some();
        match read(line) {
            Read::Marker(kind, subject) => {
                let (number, after) = (self.number(start), (end + 1).min(self.text.len()));
                self.candidates.push(Candidate {
                    kind,
                    subject,
                    number,
                    start,
                    after,
                    fenced,
                    fence_end: None,
                });
            }
            Read::Malformed(name, why) => {
                let line = self.number(start);
                self.malformed.push((fenced, Malformed { line, name, why }));
            }
            Read::Text => {}
        }
    }

    fn finish(self) -> Scan<'a> {
        let inside = self.candidates.iter().all(|candidate| candidate.fenced);
        let chosen: Vec<&Candidate<'_>> = self.candidates.iter().filter(|c| c.fenced == inside).collect();
        let mut markers = Vec::with_capacity(chosen.len());
        for (at, candidate) in chosen.iter().enumerate() {
            let next = chosen.get(at + 1).map_or(self.text.len(), |next| next.start);
            let end = candidate.fence_end.map_or(next, |end| end.min(next));
            markers.push(Marker {
                kind: candidate.kind,
                subject: Cow::Borrowed(candidate.subject),
                line: candidate.number,
                fenced: candidate.fenced,
                body: Body::new(&self.text[candidate.after..end.max(candidate.after)]),
            });
        }
        let malformed = self.malformed.into_iter().filter(|(fenced, _)| *fenced == inside || !*fenced);
        Scan { markers, malformed: malformed.map(|(_, malformed)| malformed).collect() }
    }
}

enum Read<'a> {
    Marker(MarkerKind, &'a str),
    Malformed(&'static str, &'static str),
    Text,
}

fn read(line: &str) -> Read<'_> {
    for kind in MarkerKind::all() {
        let Some(rest) = line.strip_prefix(kind.name()) else { continue };
        match kind.subject() {
            Subject::None if rest.is_empty() => return Read::Marker(kind, ""),
            // `REMEDIATION_COMPLETED` is another word, and words after the marker make it prose.
            Subject::None if rest.starts_with([' ', '\t', ':']) => {
                return Read::Malformed(kind.name(), "it must be alone on its line");
            }
            Subject::None => {}
            Subject::Named(what) => {
                let Some(subject) = rest.strip_prefix(':') else { continue };
                let subject = subject.trim_matches([' ', '\t', '\r']);
                if subject.is_empty() {
                    return Read::Malformed(
                        kind.name(),
                        match what {
                            "task_id" => "the task's id is missing after it",
                            "file_path" => "the file's path is missing after it",
                            "expert_name" => "the expert's name is missing after it",
                            _ => "the request's id is missing after it",
                        },
                    );
                }
                return Read::Marker(kind, subject);
            }
        }
    }
    if line.starts_with(HEALTH_AUDIT) {
        return Read::Malformed(
            "HEALTH_AUDIT",
            "it must be `HEALTH_AUDIT: HEALTHY` or `HEALTH_AUDIT: UNHEALTHY`",
        );
    }
    Read::Text
}
