//! Window of a text: a part of a log or transcript of any size, with a cursor.

use memchr::memchr_iter;

use crate::model::RunKey;
use crate::source::{TextKind, TextPart, TextPlace, TextRequest};
use crate::text::{StyledLine, printed_line};
use crate::transcript::entry_lines;

/// Maximum size of the window in bytes.
const WINDOW: usize = 512 << 10;
/// Number of lines from an edge of the window at which more is requested.
const NEAR: usize = 200;

/// Text that a window shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextTarget {
    pub(crate) run: RunKey,
    pub(crate) phase: Option<String>,
    pub(crate) kind: TextKind,
}

/// Lines of a window, by their kind.
#[derive(Debug, Clone)]
enum Lines {
    /// Offsets in the window at which lines of a log begin.
    Log(Vec<usize>),
    /// Lines of the entries of a transcript, each with the offset of its entry in the window.
    Transcript(Vec<(usize, StyledLine)>),
}

/// Window of a text.
#[derive(Debug, Clone)]
pub(crate) struct TextView {
    pub(crate) target: Option<TextTarget>,
    /// File that a person chose; without one, the newest.
    pub(crate) pinned: Option<String>,
    pub(crate) file: String,
    pub(crate) files: Vec<String>,
    /// Offset of the window in the file.
    start: u64,
    bytes: Vec<u8>,
    size: u64,
    lines: Lines,
    columns: usize,
    pub(crate) cursor: usize,
    pub(crate) top: usize,
    pub(crate) left: usize,
    pub(crate) is_following: bool,
    /// Whether anything was read.
    pub(crate) is_loaded: bool,
    /// Reason why the text cannot be read.
    pub(crate) problem: Option<String>,
    is_waiting: bool,
}

impl Default for TextView {
    fn default() -> Self {
        Self {
            target: None,
            pinned: None,
            file: String::new(),
            files: Vec::new(),
            start: 0,
            bytes: Vec::new(),
            size: 0,
            lines: Lines::Log(Vec::new()),
            columns: 80,
            cursor: 0,
            top: 0,
            left: 0,
            is_following: true,
            is_loaded: false,
            problem: None,
            is_waiting: false,
        }
    }
}

impl TextView {
    /// Shows another text. Returns the request for it, or `None` if it is shown already.
    pub(crate) fn show(&mut self, target: &TextTarget) -> Option<TextRequest> {
        if self.target.as_ref() == Some(target) {
            return None;
        }
        *self = Self { target: Some(target.clone()), columns: self.columns, ..Self::default() };
        self.request(TextPlace::End)
    }

    /// Shows the file that is `step` places after the shown one.
    pub(crate) fn switch_file(&mut self, step: isize) -> Option<TextRequest> {
        let at = self.files.iter().position(|file| *file == self.file)?;
        let next = at.checked_add_signed(step).filter(|next| *next < self.files.len())?;
        let is_newest = next + 1 == self.files.len();
        self.pinned = Some(self.files[next].clone()).filter(|_| !is_newest);
        self.is_following = true;
        self.is_waiting = false;
        self.request(TextPlace::End)
    }

    /// Returns the request for what is new, if the end is shown.
    pub(crate) fn poll(&mut self) -> Option<TextRequest> {
        if !self.is_loaded || self.file.is_empty() {
            return self.request(TextPlace::End);
        }
        if self.is_following { self.request(TextPlace::After(self.end())) } else { None }
    }

    fn request(&mut self, place: TextPlace) -> Option<TextRequest> {
        let target = self.target.as_ref()?;
        if std::mem::replace(&mut self.is_waiting, true) {
            return None;
        }
        Some(TextRequest {
            run: target.run.clone(),
            phase: target.phase.clone(),
            kind: target.kind,
            file: self.pinned.clone(),
            place,
            find: None,
        })
    }

    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// Takes the reply to a request. Returns the next request, if one is needed.
    pub(crate) fn take(
        &mut self,
        request: &TextRequest,
        reply: Result<TextPart, String>,
        height: usize,
    ) -> Option<TextRequest> {
        let is_own = self.target.as_ref().is_some_and(|target| {
            target.run == request.run && target.phase == request.phase && target.kind == request.kind
        });
        if !is_own || request.file != self.pinned {
            return None;
        }
        self.is_waiting = false;
        self.is_loaded = true;
        let part = match reply {
            Ok(part) => part,
            // What was read before stays in view.
            Err(problem) => {
                self.problem = Some(problem);
                return None;
            }
        };
        self.problem = None;
        let is_other = part.file != self.file;
        self.files = part.files;
        if request.find.is_some() {
            let found = part.found?;
            self.file = part.file;
            (self.start, self.bytes, self.size) = (part.start, part.bytes, part.size);
            self.index();
            self.is_following = false;
            self.cursor = self.line_at(found);
            self.top = self.cursor.saturating_sub(height / 3);
            self.clamp(height);
            return None;
        }
        match request.place {
            TextPlace::End => {
                self.file = part.file;
                (self.start, self.bytes, self.size) = (part.start, part.bytes, part.size);
                self.index();
                self.go_to_end(height);
                return None;
            }
            _ if is_other => return self.request(TextPlace::End),
            TextPlace::After(offset) => {
                if part.size < self.end() {
                    return self.request(TextPlace::End);
                }
                self.size = part.size;
                if offset != self.end() || part.start != offset || part.bytes.is_empty() {
                    return None;
                }
                let before = self.len();
                self.bytes.extend_from_slice(&part.bytes);
                self.index();
                let kept = self.len();
                self.drop_front();
                let dropped = kept - self.len();
                self.cursor = self.cursor.saturating_sub(dropped);
                self.top = self.top.saturating_sub(dropped);
                if self.is_following {
                    self.go_to_end(height);
                    if self.end() < self.size && self.len() > before {
                        return self.request(TextPlace::After(self.end()));
                    }
                }
            }
            TextPlace::Before(offset) => {
                self.size = part.size;
                if offset != self.start || part.bytes.is_empty() {
                    return None;
                }
                let before = self.len();
                let mut bytes = part.bytes;
                bytes.extend_from_slice(&self.bytes);
                (self.bytes, self.start) = (bytes, part.start);
                self.index();
                let added = self.len().saturating_sub(before);
                self.cursor += added;
                self.top += added;
                self.drop_back();
            }
        }
        self.clamp(height);
        None
    }

    /// Returns the request for the next line that has a text, in a direction from the cursor.
    pub(crate) fn find(&mut self, text: &str, forward: bool) -> Option<TextRequest> {
        let place = match (forward, self.offset(self.cursor), self.offset(self.cursor + 1)) {
            (_, None, _) => TextPlace::End,
            (false, Some(own), _) => TextPlace::Before(own),
            (true, Some(_), Some(next)) => TextPlace::After(next),
            (true, Some(_), None) => TextPlace::After(self.end()),
        };
        self.is_waiting = false;
        self.request(place).map(|request| TextRequest { find: Some(text.to_owned()), ..request })
    }

    /// Offset in the file of a line; of a line of a transcript that of its entry. The next line of the same entry counts as the next entry.
    fn offset(&self, number: usize) -> Option<u64> {
        let at = match &self.lines {
            Lines::Log(starts) => *starts.get(number)?,
            Lines::Transcript(lines) => {
                let own = lines.get(number)?.0;
                let before = number.checked_sub(1).and_then(|before| lines.get(before)).map(|(at, _)| *at);
                if number == self.cursor + 1 && before == Some(own) {
                    lines.iter().map(|(at, _)| *at).find(|at| *at > own)?
                } else {
                    own
                }
            }
        };
        Some(self.start + at as u64)
    }

    /// Number of the line at an offset in the file.
    fn line_at(&self, offset: u64) -> usize {
        let at = usize::try_from(offset.saturating_sub(self.start)).unwrap_or(usize::MAX);
        match &self.lines {
            Lines::Log(starts) => starts.partition_point(|start| *start <= at).saturating_sub(1),
            Lines::Transcript(lines) => lines.iter().position(|(start, _)| *start >= at).unwrap_or(0),
        }
    }

    /// Finds the lines of the window.
    fn index(&mut self) {
        let is_transcript = self.target.as_ref().is_some_and(|target| target.kind == TextKind::Transcript);
        let whole = self.bytes.strip_suffix(b"\n").unwrap_or(&self.bytes);
        if whole.is_empty() && self.bytes.is_empty() {
            self.lines = if is_transcript { Lines::Transcript(Vec::new()) } else { Lines::Log(Vec::new()) };
            return;
        }
        self.lines = if is_transcript {
            // Empty lines have no entry and count for the offset.
            let mut offset = 0;
            let entries = whole.split(|byte| *byte == b'\n').map(|line| {
                let at = offset;
                offset += line.len() + 1;
                (at, line)
            });
            let entries = entries.filter(|(_, line)| !line.is_empty());
            let lines = entries.flat_map(|(at, line)| {
                entry_lines(line, self.columns).into_iter().map(move |line| (at, line))
            });
            Lines::Transcript(lines.collect())
        } else {
            let ends = memchr_iter(b'\n', whole);
            Lines::Log(std::iter::once(0).chain(ends.map(|at| at + 1)).collect())
        };
    }

    fn drop_front(&mut self) {
        let Some(over) = self.bytes.len().checked_sub(WINDOW).filter(|over| *over > 0) else { return };
        let Some(end) = self.bytes[over..].iter().position(|byte| *byte == b'\n') else { return };
        let cut = over + end + 1;
        self.bytes.drain(..cut);
        self.start += cut as u64;
        self.index();
    }

    fn drop_back(&mut self) {
        if self.bytes.len() <= WINDOW {
            return;
        }
        if let Some(end) = self.bytes[..WINDOW].iter().rposition(|byte| *byte == b'\n') {
            self.bytes.truncate(end + 1);
            self.index();
        }
    }

    /// Number of lines in the window.
    pub(crate) fn len(&self) -> usize {
        match &self.lines {
            Lines::Log(starts) => starts.len(),
            Lines::Transcript(lines) => lines.len(),
        }
    }

    /// Line of the window.
    pub(crate) fn line(&self, number: usize) -> Option<StyledLine> {
        match &self.lines {
            Lines::Log(starts) => {
                let from = *starts.get(number)?;
                let to = starts.get(number + 1).map_or(self.bytes.len(), |next| *next);
                let bytes = self.bytes.get(from..to)?;
                Some(printed_line(bytes.strip_suffix(b"\n").unwrap_or(bytes)))
            }
            Lines::Transcript(lines) => lines.get(number).map(|(_, line)| line.clone()),
        }
    }

    /// Changes the width for which transcripts are broken into lines.
    pub(crate) fn resize(&mut self, columns: usize, height: usize) {
        if self.columns == columns {
            return;
        }
        self.columns = columns;
        if matches!(self.lines, Lines::Transcript(_)) {
            self.index();
        }
        if self.is_following {
            self.go_to_end(height);
        } else {
            self.clamp(height);
        }
    }

    /// Moves the cursor by lines. Returns a request if the edge of the window is near.
    pub(crate) fn go_by(&mut self, lines: isize, height: usize) -> Option<TextRequest> {
        let last = self.len().saturating_sub(1);
        self.cursor = self.cursor.saturating_add_signed(lines).min(last);
        self.is_following = lines > 0 && self.cursor == last && self.end() >= self.size;
        self.clamp(height);
        if lines < 0 && self.cursor < NEAR && self.start > 0 {
            return self.request(TextPlace::Before(self.start));
        }
        if lines > 0 && self.cursor + NEAR > last && self.end() < self.size {
            return self.request(TextPlace::After(self.end()));
        }
        None
    }

    /// Moves the cursor to the first line of the window, and requests what is before it.
    pub(crate) fn go_to_start(&mut self) -> Option<TextRequest> {
        (self.cursor, self.top, self.is_following) = (0, 0, false);
        if self.start > 0 { self.request(TextPlace::Before(self.start)) } else { None }
    }

    /// Shows the end of the file again and follows it.
    pub(crate) fn follow(&mut self, height: usize) -> Option<TextRequest> {
        self.is_following = true;
        if self.end() < self.size {
            self.is_waiting = false;
            return self.request(TextPlace::End);
        }
        self.go_to_end(height);
        None
    }

    fn go_to_end(&mut self, height: usize) {
        self.cursor = self.len().saturating_sub(1);
        self.top = self.len().saturating_sub(height.max(1));
        self.is_following = true;
    }

    fn clamp(&mut self, height: usize) {
        let height = height.max(1);
        self.cursor = self.cursor.min(self.len().saturating_sub(1));
        if self.cursor < self.top {
            self.top = self.cursor;
        }
        if self.cursor >= self.top + height {
            self.top = self.cursor + 1 - height;
        }
        self.top = self.top.min(self.len().saturating_sub(height));
    }

    /// Position in the file in percent.
    pub(crate) fn percent(&self) -> u64 {
        let lines = self.len().max(1) as u64;
        let at = self.start + self.bytes.len() as u64 * (self.cursor as u64 + 1) / lines;
        (at * 100).checked_div(self.size).map_or(100, |percent| percent.min(100))
    }
}
