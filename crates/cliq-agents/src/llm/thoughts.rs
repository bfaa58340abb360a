//! Thoughts that servers leave in the text of a reply. Pure.
//!
//! Models that think write it between tags, and a server that does not know the tags sends them as text. What is between them is
//! neither an answer nor a part of one. Time and memory are linear in the size of the text.

use super::code::Code;

/// Names of the tags that models put around thoughts.
const NAMES: [&str; 9] = [
    "think",
    "thinking",
    "reasoning",
    "thought",
    "thoughts",
    "reflection",
    "seed:think",
    "antthinking",
    "inner_monologue",
];
/// Other marks around thoughts: start and end.
const MARKS: [(&str, &str); 6] = [
    ("[THINK]", "[/THINK]"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<unused94>", "<unused95>"),
    ("◁think▷", "◁/think▷"),
    ("<|channel>thought", "<channel|>"),
];
/// Maximum size of a tag with its attributes, and of the header of a channel, in bytes.
const LONGEST: usize = 160;
const CHANNEL: &str = "<|channel|>";
const MESSAGE: &str = "<|message|>";
/// Marks that end the message of a channel.
const ENDS: [&str; 3] = ["<|end|>", "<|return|>", "<|call|>"];

/// Text of a reply without its thoughts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Split {
    pub(super) text: String,
    pub(super) thoughts: Vec<String>,
}

/// Mark in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// Start of a thought.
    Open,
    /// End of a thought.
    Close,
    /// Header of a channel whose messages are thoughts.
    ThoughtChannel,
    /// Header of a channel whose messages are text, or a mark between messages.
    TextChannel,
    /// Header of a channel whose messages are calls.
    CallChannel,
    /// End of the message of a channel.
    End,
}

/// Mark at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// Mark with its size in bytes.
    Mark(Mark, usize),
    /// Start of a mark: the text is too short to decide.
    Incomplete,
    No,
}

/// Returns the mark at the start of a text.
fn mark_at(text: &str) -> Found {
    for (open, close) in MARKS {
        if text.starts_with(open) {
            return Found::Mark(Mark::Open, open.len());
        }
        if text.starts_with(close) {
            return Found::Mark(Mark::Close, close.len());
        }
    }
    if let Some(rest) = text.strip_prefix(CHANNEL) {
        return channel(rest, CHANNEL.len());
    }
    if let Some(end) = ENDS.iter().find(|end| text.starts_with(**end)) {
        return Found::Mark(Mark::End, end.len());
    }
    if let Some(rest) = text.strip_prefix("<|start|>") {
        let (channel, message) = (head(rest).find(CHANNEL), head(rest).find(MESSAGE));
        return match (channel.or(message), message) {
            (Some(at), Some(end)) if rest[..at].contains("to=") => {
                Found::Mark(Mark::CallChannel, 9 + end + MESSAGE.len())
            }
            (Some(at), _) => Found::Mark(Mark::TextChannel, 9 + at),
            (None, _) if rest.len() < LONGEST => Found::Incomplete,
            (None, _) => Found::No,
        };
    }
    if text.starts_with(MESSAGE) {
        return Found::Mark(Mark::TextChannel, MESSAGE.len());
    }
    let is_start = |mark: &str| text.len() < mark.len() && mark.as_bytes().starts_with(text.as_bytes());
    let tag = match text.strip_prefix('<') {
        Some(rest) => tag(rest),
        None => Found::No,
    };
    let others = [CHANNEL, MESSAGE, "<|start|>"].into_iter().chain(ENDS);
    let mut marks = MARKS.iter().flat_map(|(open, close)| [*open, *close]).chain(others);
    match tag {
        Found::No if marks.any(is_start) => Found::Incomplete,
        tag => tag,
    }
}

/// Returns the first bytes of a text, up to the longest header.
fn head(text: &str) -> &str {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Reads the header of a channel (the harmony format): `analysis<|message|>`.
fn channel(header: &str, before: usize) -> Found {
    let Some(at) = head(header).find(MESSAGE) else {
        return if header.len() < LONGEST {
            Found::Incomplete
        } else {
            Found::Mark(Mark::ThoughtChannel, before)
        };
    };
    let (words, size) = (&header[..at], before + at + MESSAGE.len());
    let mark = match words.split_whitespace().next() {
        Some("final") => Mark::TextChannel,
        Some("commentary") if words.contains("to=") => Mark::CallChannel,
        // Preambles to calls are not the answer, and unknown channels neither.
        _ => Mark::ThoughtChannel,
    };
    Found::Mark(mark, size)
}

/// Reads a tag after its `<`.
fn tag(rest: &str) -> Found {
    let Some(end) = head(rest).find(['>', '<', '\n']) else {
        let name = rest.trim_start_matches('/').to_ascii_lowercase();
        let is_start = NAMES.iter().any(|known| known.starts_with(&name) || name.starts_with(known));
        return if rest.len() < LONGEST && is_start { Found::Incomplete } else { Found::No };
    };
    let inner = rest[..end].trim();
    if !rest[end..].starts_with('>') || inner.ends_with('/') {
        return Found::No;
    }
    let (mark, inner) = match inner.strip_prefix('/') {
        Some(inner) => (Mark::Close, inner.trim()),
        None => (Mark::Open, inner),
    };
    let name = inner.split_whitespace().next().unwrap_or_default();
    match NAMES.iter().any(|known| name.eq_ignore_ascii_case(known)) {
        true => Found::Mark(mark, end + 2),
        false => Found::No,
    }
}

/// First characters of marks.
const STARTS: [char; 3] = ['<', '[', '◁'];

/// Separates the thoughts of a reply from its text.
///
/// A closing tag without an opening one makes everything before it a thought, a tag that is never closed everything after it. A tag
/// within a code span or a fenced block of the text is text.
pub(super) fn split(reply: &str) -> Split {
    if let Some((thought, text)) = bare_channels(reply) {
        return Split { text, thoughts: vec![thought] };
    }
    let mut splitter =
        Splitter { reply, split: Split::default(), kept: 0, thought: None, has_channels: false };
    splitter.run();
    let mut split = splitter.split;
    split.thoughts.retain(|thought| !thought.is_empty());
    if split.text.len() != reply.len() {
        split.text = split.text.trim().to_owned();
    }
    split
}

struct Splitter<'a> {
    reply: &'a str,
    split: Split,
    /// Start of the part that is in progress.
    kept: usize,
    /// Kind of the thought that is in progress: whether it is a channel. `None` in text.
    thought: Option<bool>,
    has_channels: bool,
}

impl Splitter<'_> {
    fn run(&mut self) {
        let reply = self.reply;
        // Code is found from the end of the last thought on: marks of code within a thought count for nothing.
        let mut code = Code::new(reply);
        let mut place = 0;
        while let Some(found) = reply[place..].find(|c| STARTS.contains(&c) || matches!(c, '`' | '~')) {
            let at = place + found;
            if matches!(reply.as_bytes()[at], b'`' | b'~') {
                let run_end = at + reply[at..].bytes().take_while(|&b| b == reply.as_bytes()[at]).count();
                place = match self.thought {
                    Some(_) => run_end,
                    None => {
                        let end = code.run_at(at).end();
                        lone_close(&reply[at..end]).map_or(end, |close| at + close)
                    }
                };
                continue;
            }
            match mark_at(&reply[at..]) {
                Found::Mark(mark, size) => place = self.apply(mark, at, size),
                Found::Incomplete if reply[at..].starts_with(CHANNEL) => {
                    place = self.apply(Mark::ThoughtChannel, at, CHANNEL.len());
                }
                Found::Incomplete | Found::No => {
                    place = at + reply[at..].chars().next().map_or(1, char::len_utf8)
                }
            }
        }
        self.end_part(reply.len());
    }

    /// Applies a mark. Returns the position after it.
    fn apply(&mut self, mark: Mark, at: usize, size: usize) -> usize {
        let after = at + size;
        match (mark, self.thought) {
            (Mark::Open, None) => {
                self.end_part(at);
                self.start(after, Some(false));
            }
            (Mark::Close, _) => {
                self.end_part(at);
                if self.thought.is_none() {
                    // Everything before it was a thought.
                    let before = std::mem::take(&mut self.split.text);
                    self.split.thoughts.push(before.trim().to_owned());
                }
                self.start(after, None);
            }
            (Mark::ThoughtChannel, None | Some(true)) => {
                self.end_part(at);
                self.has_channels = true;
                self.start(after, Some(true));
            }
            (Mark::TextChannel, None | Some(true)) => {
                self.end_part(at);
                self.has_channels = true;
                self.start(after, None);
            }
            (Mark::CallChannel, None | Some(true)) => {
                // The call stays in the text, where it is read later.
                self.end_part(at);
                self.has_channels = true;
                self.start(at, None);
            }
            (Mark::End, Some(true)) => {
                self.end_part(at);
                self.start(after, None);
            }
            (Mark::End, None) if self.has_channels && !self.reply[at..].starts_with("<|call|>") => {
                self.end_part(at);
                self.start(after, None);
            }
            // Marks within a thought are a part of it.
            (Mark::Open | Mark::End, _)
            | (Mark::ThoughtChannel | Mark::TextChannel | Mark::CallChannel, Some(false)) => {}
        }
        after
    }

    fn start(&mut self, at: usize, thought: Option<bool>) {
        (self.kept, self.thought) = (at, thought);
    }

    fn end_part(&mut self, end: usize) {
        let part = &self.reply[self.kept..end];
        match self.thought {
            Some(_) => self.split.thoughts.push(part.trim().to_owned()),
            None => self.split.text.push_str(part),
        }
        self.kept = end;
    }
}

/// Returns the offset of a closing tag on a line of its own in a block that has no opening tag before it: the block
/// began in a thought.
fn lone_close(block: &str) -> Option<usize> {
    let mut offset = 0;
    for line in block.split_inclusive('\n') {
        let trimmed = line.trim();
        if trimmed.starts_with(STARTS) {
            match mark_at(trimmed) {
                Found::Mark(Mark::Open, _) => return None,
                Found::Mark(Mark::Close, size) if size == trimmed.len() => {
                    return Some(offset + (line.len() - line.trim_start().len()));
                }
                _ => {}
            }
        }
        offset += line.len();
    }
    None
}

/// Separates channels whose marks the server removed: `analysisWe need …assistantfinalThe answer`.
fn bare_channels(reply: &str) -> Option<(String, String)> {
    let rest = reply.trim_start().strip_prefix("analysis")?;
    let (thought, text) = rest.rsplit_once("assistantfinal")?;
    Some((thought.trim().to_owned(), text.trim().to_owned()))
}

/// Filter for a text that arrives in pieces: it passes on what is no thought, for display.
///
/// A thought whose opening tag is missing is recognized at its end, and was passed on by then.
#[derive(Debug, Default)]
pub(super) struct Filter {
    pending: String,
    thought: Option<bool>,
    is_in_block: bool,
    is_in_span: bool,
    is_within_line: bool,
}

impl Filter {
    /// Adds a piece. Returns the text that is complete.
    pub(super) fn push(&mut self, piece: &str) -> String {
        self.pending.push_str(piece);
        self.take(false)
    }

    /// Returns the rest of the text.
    pub(super) fn finish(&mut self) -> String {
        self.take(true)
    }

    fn take(&mut self, is_end: bool) -> String {
        let pending = std::mem::take(&mut self.pending);
        let (mut out, mut place) = (String::new(), 0);
        while let Some(c) = pending[place..].chars().next() {
            let rest = &pending[place..];
            let mut size = c.len_utf8();
            match c {
                '`' => {
                    size = rest.len() - rest.trim_start_matches('`').len();
                    if size == rest.len() && !is_end && size < LONGEST {
                        break;
                    }
                    if self.thought.is_none() && size >= 3 && !self.is_within_line {
                        self.is_in_block = !self.is_in_block;
                    } else if self.thought.is_none() && !self.is_in_block {
                        self.is_in_span = !self.is_in_span;
                    }
                }
                '\n' => self.is_in_span = false,
                c if STARTS.contains(&c) && !self.is_in_block && !self.is_in_span => match mark_at(rest) {
                    Found::Incomplete if !is_end => break,
                    Found::Mark(mark, found) if self.switch(mark) => {
                        place += found;
                        continue;
                    }
                    Found::Incomplete | Found::Mark(..) | Found::No => {}
                },
                _ => {}
            }
            self.is_within_line = c != '\n' && (self.is_within_line || !c.is_whitespace());
            if self.thought.is_none() {
                out.push_str(&rest[..size]);
            }
            place += size;
        }
        pending[place..].clone_into(&mut self.pending);
        out
    }

    /// Applies a mark. Returns whether it is left out of the text.
    fn switch(&mut self, mark: Mark) -> bool {
        let (thought, is_mark) = match (mark, self.thought) {
            (Mark::Open, None) => (Some(false), true),
            (Mark::Close, _) | (Mark::End, Some(true)) => (None, true),
            (Mark::ThoughtChannel, None | Some(true)) => (Some(true), true),
            (Mark::TextChannel, None | Some(true)) => (None, true),
            (Mark::CallChannel, None | Some(true)) => (None, false),
            (thought, state) => (state, matches!(thought, Mark::End)),
        };
        self.thought = thought;
        is_mark
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Replies with their thoughts and text.
    const CASES: &[(&str, &[&str], &str)] = &[
        ("<think>\nPASS\n</think>\nI cannot decide.", &["PASS"], "I cannot decide."),
        ("<Thinking>a</Thinking>b<reasoning>c</reasoning>d", &["a", "c"], "bd"),
        ("<thought budget=\"3\">a</thought>\nb", &["a"], "b"),
        ("<seed:think>a</seed:think>b", &["a"], "b"),
        ("[THINK]a[/THINK]b", &["a"], "b"),
        ("◁think▷a◁/think▷b", &["a"], "b"),
        ("<|START_THINKING|>a<|END_THINKING|>b", &["a"], "b"),
        ("<|begin_of_thought|>a<|end_of_thought|>b", &["a"], "b"),
        ("<|channel>thought\na<channel|>b", &["a"], "b"),
        ("<unused94>a<unused95>b", &["a"], "b"),
        // A closing tag alone.
        ("Let me see.\nPASS\n</think>\n\nNot enough.", &["Let me see.\nPASS"], "Not enough."),
        ("a</thinking>b</think>c", &["a", "b"], "c"),
        (
            "```json\n{\"verdict\": \"PASS\"}\n</think>\nNo.\n```sh\nls\n```",
            &["```json\n{\"verdict\": \"PASS\"}"],
            "No.\n```sh\nls\n```",
        ),
        (
            "```\nPASS\n</think>\nNo: ```x``` is missing.\n```\n",
            &["```\nPASS"],
            "No: ```x``` is missing.\n```",
        ),
        // A block that is never closed.
        ("Well. <think>PASS", &["PASS"], "Well."),
        ("<think>", &[], ""),
        // Tags within a thought, and code marks that are not balanced in it.
        ("<think>a <think> ` ```\n</think>b", &["a <think> ` ```"], "b"),
        ("<think>a<think>b</think>c</think>d", &["a<think>b", "c"], "d"),
        ("<think>`</think>a `b` c", &["`"], "a `b` c"),
        // Code in the answer is text.
        ("Write `<think>` and `</think>`.", &[], "Write `<think>` and `</think>`."),
        ("So:\n```\n<think>x</think>\n```\nPASS", &[], "So:\n```\n<think>x</think>\n```\nPASS"),
        (
            "So:\n```rs\nif text.contains(\"</think>\") {}\n```\n",
            &[],
            "So:\n```rs\nif text.contains(\"</think>\") {}\n```\n",
        ),
        // Channels.
        (
            "<|channel|>analysis<|message|>PASS?<|end|><|start|>assistant<|channel|>final<|message|>No.<|return|>",
            &["PASS?"],
            "No.",
        ),
        ("<|channel|>analysis<|message|>never closed", &["never closed"], ""),
        ("<|channel|>analysis", &["analysis"], ""),
        ("<|channel|>commentary<|message|>I look.<|end|>b", &["I look."], "b"),
        (
            "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>",
            &["a"],
            "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>",
        ),
        ("analysisWe need to decide.assistantfinalNo.", &["We need to decide."], "No."),
        // Other text.
        ("  analysis of x\n", &[], "  analysis of x\n"),
        ("a < b, <b>c</b>, [1], <thin>, <think/>", &[], "a < b, <b>c</b>, [1], <thin>, <think/>"),
    ];

    #[test]
    fn thoughts_are_not_text() {
        for (reply, thoughts, text) in CASES {
            let split = split(reply);
            assert_eq!(
                (split.thoughts.as_slice(), split.text.as_str()),
                (&thoughts.iter().map(|&t| t.to_owned()).collect::<Vec<_>>()[..], *text),
                "{reply}"
            );
        }
    }

    #[test]
    fn pieces_show_no_thought() {
        for (reply, shown) in [
            ("<think>PASS</think>\nNo.", "\nNo."),
            ("a `<think>` b <b>c</b> [1] ◁", "a `<think>` b <b>c</b> [1] ◁"),
            ("[THINK]a[/THINK]b<reasoning>c", "b"),
            ("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b", "b"),
            ("```\n<think>\n```\n<think>x</think>y", "```\n<think>\n```\ny"),
        ] {
            for size in [1, 3, 1000] {
                let (mut filter, mut out) = (Filter::default(), String::new());
                let chars: Vec<char> = reply.chars().collect();
                chars.chunks(size).for_each(|piece| out += &filter.push(&piece.iter().collect::<String>()));
                out += &filter.finish();
                assert_eq!(out, shown, "{reply} in pieces of {size}");
            }
        }
    }

    /// A quadratic search would not end within the time limit of a test.
    #[test]
    fn large_replies_take_linear_time() {
        for unit in [
            "<think>",
            "</think>",
            "<think></think>",
            "`<think>` ",
            "```\n</think>\n```\n",
            "<",
            "<|channel|>",
            "<|start|>",
            "[THINK]`",
            "``</think>`",
        ] {
            let reply = unit.repeat((1 << 18) / unit.len());
            let found = split(&reply);
            assert!(found.text.len() <= reply.len(), "{unit:?}");
            let mut filter = Filter::default();
            let shown = filter.push(&reply).len() + filter.finish().len();
            assert!(shown <= reply.len(), "{unit:?}");
        }
    }

    proptest! {
        #[test]
        fn any_reply_is_split(reply in "(?s)(<think>|</think>|`|\n|```|<\\|channel\\|>|analysis|<\\|message\\|>|PASS|ä|<|\\[THINK\\]){0,20}") {
            let found = split(&reply);
            prop_assert!(found.text.len() + found.thoughts.iter().map(String::len).sum::<usize>() <= reply.len());
        }

        #[test]
        fn closed_thoughts_never_reach_the_text(thought in "[a-z`~\n ]{0,40}", answer in "[a-z]{0,10}") {
            let found = split(&format!("<think>{thought}SECRET</think>{answer}"));
            prop_assert_eq!(found.text, answer);
        }
    }
}
