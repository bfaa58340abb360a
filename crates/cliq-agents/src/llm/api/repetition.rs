//! Replies that repeat the same words without end. Pure.

/// Number of bytes at the end of a text that are looked at.
const WINDOW: usize = 8_000;
/// Minimum number of bytes that consist of repetitions.
const LENGTH: usize = 2_000;
/// Minimum number of repetitions.
const COUNT: usize = 20;
/// Range of the length of what is repeated, in bytes.
const PERIOD: std::ops::RangeInclusive<usize> = 8..=400;
/// Number of further bytes after which a text is looked at again.
const STEP: usize = 1_000;

/// Watch over a text that grows.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Watch {
    /// Length of the text when it was last looked at.
    seen: usize,
}

impl Watch {
    /// Returns the repeated words if the text has begun to repeat itself. Code may repeat itself: text inside of a fence is not looked at.
    pub(super) fn repeated(&mut self, text: &str) -> Option<String> {
        if text.len() < self.seen + STEP {
            return None;
        }
        self.seen = text.len();
        let mut start = text.len().saturating_sub(WINDOW);
        while !text.is_char_boundary(start) {
            start += 1;
        }
        let tail = &text[start..];
        let period = period(tail.as_bytes())?;
        let fences = text.lines().filter(|line| line.trim_start().starts_with("```")).count();
        let is_code = fences % 2 == 1;
        let mut from = tail.len() - period;
        while !tail.is_char_boundary(from) {
            from -= 1;
        }
        (!is_code)
            .then(|| tail[from..].trim().to_owned())
            .filter(|words| words.chars().any(char::is_alphabetic))
    }
}

/// Returns the length of the bytes that the end of a text repeats.
fn period(tail: &[u8]) -> Option<usize> {
    // The failure function of the reversed text gives the shortest period of each of its beginnings.
    let byte = |at: usize| tail[tail.len() - 1 - at];
    let mut borders = vec![0; tail.len()];
    let mut found = None;
    for at in 1..tail.len() {
        let mut border: usize = borders[at - 1];
        while border > 0 && byte(at) != byte(border) {
            border = borders[border - 1];
        }
        border += usize::from(byte(at) == byte(border));
        borders[at] = border;
        let (length, period) = (at + 1, at + 1 - border);
        if length >= LENGTH && PERIOD.contains(&period) && length / period >= COUNT {
            found = Some(period);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn endless_words_are_noticed_and_code_and_lists_are_not() {
        let words = "I am a part of a team that provides a service. ";
        assert_eq!(Watch::default().repeated(&words.repeat(60)), Some(words.trim().to_owned()));
        assert_eq!(
            Watch::default().repeated(&format!("It began well.\n\n{}", "### Ich höre auf\n\n".repeat(200))),
            Some("### Ich höre auf".to_owned())
        );
        assert_eq!(Watch::default().repeated(&words.repeat(10)), None, "short");
        assert_eq!(Watch::default().repeated(&format!("```\n{}", words.repeat(60))), None, "code");
        assert_eq!(Watch::default().repeated(&"-".repeat(5_000)), None, "a line");
        assert_eq!(Watch::default().repeated(&"0, 0, 0, 0, ".repeat(500)), None, "no words");
        let list: String = (0..400).map(|n| format!("- file {n}.txt is in order\n")).collect();
        assert_eq!(Watch::default().repeated(&list), None);
    }

    proptest! {
        #[test]
        fn any_text_is_looked_at(text in "(?s)[a-cä\n`]{0,80}", times in 0usize..200) {
            let text = text.repeat(times);
            if let Some(words) = Watch::default().repeated(&text) {
                prop_assert!(text.contains(&words));
            }
        }
    }
}
