//! Code in Markdown: fenced blocks and code spans. Pure.
//!
//! Time and memory are linear in the size of the text.

use std::ops::Range;

/// Maximum length of a fence, and of the marks of a code span, in characters. Longer runs are text.
const LONGEST: usize = 64;

/// Fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// Position with both fences.
    pub(super) whole: Range<usize>,
    /// Position between the fences.
    pub(super) content: Range<usize>,
    /// Position of the words after the opening fence, such as `json`.
    pub(super) info: Range<usize>,
}

/// Meaning of a run of backticks or tildes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Run {
    /// Fenced block, at the start of its first line.
    Block(Block),
    /// Code span with its marks.
    Span(Range<usize>),
    /// Marks that open nothing. The position is that of the marks alone.
    Marks(Range<usize>),
}

impl Run {
    /// Returns the position after the run and its content.
    pub(super) fn end(&self) -> usize {
        match self {
            Self::Block(block) => block.whole.end,
            Self::Span(range) | Self::Marks(range) => range.end,
        }
    }
}

/// Line that consists of a fence.
struct Fence {
    start: usize,
    end: usize,
    kind: u8,
    length: usize,
}

/// Finder of code in one text. Positions have to be queried in ascending order.
pub(super) struct Code<'a> {
    text: &'a str,
    closers: Vec<Fence>,
    /// Shortest fence of each kind that is known not to be closed.
    unclosed: [usize; 2],
    /// End of the line of the last query, and a bit for each length of marks that no span of this line closes.
    line: (usize, u64),
}

impl<'a> Code<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut closers = Vec::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let end = start + line.len();
            let trimmed = line.trim();
            if let Some(kind) = trimmed.bytes().next().filter(|byte| matches!(byte, b'`' | b'~'))
                && trimmed.len() >= 3
                && trimmed.bytes().all(|byte| byte == kind)
            {
                closers.push(Fence { start, end, kind, length: trimmed.len() });
            }
            start = end;
        }
        Self { text, closers, unclosed: [usize::MAX; 2], line: (0, 0) }
    }

    /// Returns the meaning of the backticks or tildes at a position, which is the first of its run.
    pub(super) fn run_at(&mut self, at: usize) -> Run {
        let bytes = self.text.as_bytes();
        let kind = bytes[at];
        let length = bytes[at..].iter().take_while(|&&byte| byte == kind).count();
        let after = at + length;
        if let Some(block) = self.block(at, kind, length) {
            return Run::Block(block);
        }
        let marks = Run::Marks(at..after);
        if kind != b'`' || length >= LONGEST {
            return marks;
        }
        if at >= self.line.0 {
            let end = self.text[at..].find('\n').map_or(self.text.len(), |found| at + found);
            self.line = (end, 0);
        }
        let bit = 1_u64 << length;
        if self.line.1 & bit != 0 {
            return marks;
        }
        let (mut place, end) = (after, self.line.0);
        while let Some(found) = self.text[place..end].find('`') {
            let start = place + found;
            let run = bytes[start..end].iter().take_while(|&&byte| byte == b'`').count();
            place = start + run;
            if run == length {
                return Run::Span(at..place);
            }
        }
        self.line.1 |= bit;
        marks
    }

    /// Returns the block that a fence at this position opens.
    fn block(&mut self, at: usize, kind: u8, length: usize) -> Option<Block> {
        if !(3..=LONGEST).contains(&length) {
            return None;
        }
        // Only a short indentation may precede a fence.
        let before = &self.text.as_bytes()[..at];
        let indent =
            before.iter().rev().take(LONGEST).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let start = at - indent;
        if start > 0 && before[start - 1] != b'\n' {
            return None;
        }
        let after = at + length;
        let line_end = self.text[after..].find('\n').map(|found| after + found)?;
        let info = after..line_end;
        if kind == b'`' && self.text[info.clone()].contains('`') {
            return None;
        }
        let unclosed = &mut self.unclosed[usize::from(kind == b'~')];
        if length >= *unclosed {
            return None;
        }
        let first = self.closers.partition_point(|fence| fence.start <= line_end);
        match self.closers[first..].iter().find(|fence| fence.kind == kind && fence.length >= length) {
            Some(close) => Some(Block { whole: start..close.end, content: line_end + 1..close.start, info }),
            None => {
                *unclosed = length;
                None
            }
        }
    }
}

/// Returns the fenced blocks of a text. A fence is closed by one of its own kind that is at least as long. A fence that is never
/// closed opens no block.
pub(super) fn blocks(text: &str) -> Vec<Block> {
    let mut code = Code::new(text);
    let (mut found, mut place) = (Vec::new(), 0);
    while let Some(at) = text[place..].find(['`', '~']) {
        let run = code.run_at(place + at);
        place = run.end();
        if let Run::Block(block) = run {
            found.push(block);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn contents(text: &str) -> Vec<&str> {
        blocks(text).into_iter().map(|block| &text[block.content]).collect()
    }

    #[test]
    fn blocks_and_spans_are_told_apart() {
        assert_eq!(contents("a\n```json\n{}\n```\nb\n~~~\nx\n```\ny\n~~~"), ["{}\n", "x\n```\ny\n"]);
        assert_eq!(contents("````\n```\ninner\n```\n````\n"), ["```\ninner\n```\n"]);
        assert_eq!(contents("```\nnever closed\n~~~\nb\n~~~"), ["b\n"]);
        assert_eq!(contents("```one line```\nand `` more"), [""; 0]);
        let text = "a `b` ``c ` d`` `e\nf`";
        let mut code = Code::new(text);
        assert_eq!(code.run_at(2), Run::Span(2..5));
        assert_eq!(code.run_at(6), Run::Span(6..15));
        assert_eq!(code.run_at(16), Run::Marks(16..17));
        assert_eq!(code.run_at(20), Run::Marks(20..21));
    }

    /// A quadratic search would not end within the time limit of a test.
    #[test]
    fn large_texts_take_linear_time() {
        for unit in ["```\n", "````x\n```\n", "`` ` ", "```x\n", "~~~\n```\n", "`a ", "\n   ```", " ```"] {
            let text = unit.repeat((1 << 20) / unit.len());
            assert!(blocks(&text).len() <= text.len(), "{unit:?}");
        }
    }

    proptest! {
        #[test]
        fn blocks_are_in_order_and_within_the_text(text in "(?s)[`~ab\n ä]{0,120}") {
            let mut end = 0;
            for block in blocks(&text) {
                prop_assert!(block.whole.start >= end && block.whole.end <= text.len());
                prop_assert!(text.get(block.content.clone()).is_some() && text.get(block.info).is_some());
                end = block.whole.end;
            }
        }
    }
}
