//! Numbered lines of a log: parts, search, and lines that report an error. Memory use does not depend on the size of the log.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use cliq_model::Run;
use memchr::memmem::Finder;
use memchr::{memchr, memchr_iter};

use crate::logs::path_of_log;
use crate::problem::Problem;

/// Maximum number of bytes of a part.
const PART: u64 = 64 << 10;
/// Maximum number of lines of a part.
const LINES: usize = 1000;
/// Number of lines before the one that was asked for.
const BEFORE: u64 = 10;
/// Maximum number of bytes of a line that are looked at.
const LINE: usize = 4096;
/// Maximum number of matches.
const MATCHES: usize = 300;
/// Words of lines that report an error, in lower case.
const ERRORS: [&str; 7] =
    ["error", "fatal", "panic", "failed", "exception", "traceback", "segmentation fault"];

/// Place in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogPlace {
    /// The last lines.
    End,
    /// A line, 1-based, with some before it.
    Line(u64),
    /// The whole lines from a byte on, with the number of the first one.
    After {
        /// Offset of the first byte.
        offset: u64,
        /// Number of its line, 1-based.
        line: u64,
    },
}

/// Line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Number, 1-based.
    pub number: u64,
    /// Bytes without the end of the line, at most 4,096.
    pub bytes: Vec<u8>,
}

/// Part of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPart {
    /// Lines in their order.
    pub lines: Vec<LogLine>,
    /// Offset of the byte after the last line.
    pub end: u64,
    /// Number of the line that begins there, 1-based.
    pub next: u64,
    /// Size of the log in bytes.
    pub size: u64,
}

/// Lines that match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogMatches {
    /// Lines in their order: at most 300.
    pub lines: Vec<LogLine>,
    /// Number of all lines that match.
    pub count: u64,
}

/// Reads a part of a log. Blocks.
///
/// # Errors
/// Returns a problem if the run has no such log.
pub fn read_lines(run: &Run, name: &str, place: LogPlace, is_final: bool) -> Result<LogPart, Problem> {
    let (file, size) = open(run, name)?;
    part(file, size, place, is_final).map_err(|_| unknown())
}

/// Searches a log for lines that contain a text, ignoring case. Without a text it searches for lines that report an error. Blocks.
///
/// # Errors
/// Returns a problem if the run has no such log.
pub fn find_lines(run: &Run, name: &str, text: Option<&str>) -> Result<LogMatches, Problem> {
    let (file, _) = open(run, name)?;
    matches(file, text).map_err(|_| unknown())
}

/// Whether a line reports an error.
#[must_use]
pub fn is_error_line(bytes: &[u8]) -> bool {
    let lower = bytes.to_ascii_lowercase();
    ERRORS.iter().any(|word| Finder::new(word.as_bytes()).find(&lower).is_some())
}

fn unknown() -> Problem {
    Problem::not_found("the run has no such log")
}

fn open(run: &Run, name: &str) -> Result<(File, u64), Problem> {
    let path = path_of_log(run, name).ok_or_else(unknown)?;
    cliq_fs::open_regular(&path).map_err(|_| unknown())
}

fn part(mut file: File, size: u64, place: LogPlace, is_final: bool) -> std::io::Result<LogPart> {
    let (offset, line) = match place {
        LogPlace::After { offset, line } => (offset.min(size), line),
        LogPlace::End => {
            let from = size.saturating_sub(PART);
            let line = count_lines(&mut file, from)? + 1;
            let (offset, line) = if from == 0 { (0, 1) } else { next_line(&mut file, from, line)? };
            last_lines(&mut file, offset, line)?
        }
        LogPlace::Line(number) => find_line(&mut file, number.saturating_sub(BEFORE).max(1))?,
    };
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    (&file).take(PART).read_to_end(&mut bytes)?;
    let is_end = offset + bytes.len() as u64 >= size;
    let (mut lines, mut at, mut number) = (Vec::new(), 0, line);
    while at < bytes.len() && lines.len() < LINES {
        let rest = &bytes[at..];
        let (length, step) = match memchr(b'\n', rest) {
            Some(length) => (length, length + 1),
            // A line that is being written comes with the next part. One that is too long comes in pieces.
            None if (is_final && is_end) || bytes.len() as u64 >= PART && at == 0 => (rest.len(), rest.len()),
            None => break,
        };
        lines.push(LogLine { number, bytes: rest[..length.min(LINE)].to_vec() });
        at += step;
        // A piece of a long line is no line.
        number += u64::from(step > length || is_final && is_end);
    }
    Ok(LogPart { lines, end: offset + at as u64, next: number, size })
}

/// Number of ends of lines before an offset.
fn count_lines(file: &mut File, end: u64) -> std::io::Result<u64> {
    file.seek(SeekFrom::Start(0))?;
    let (mut rest, mut count, mut buffer) = (end, 0, vec![0; 256 << 10]);
    while rest > 0 {
        let most = usize::try_from(rest).unwrap_or(buffer.len()).min(buffer.len());
        let read = file.read(&mut buffer[..most])?;
        if read == 0 {
            break;
        }
        count += memchr_iter(b'\n', &buffer[..read]).count() as u64;
        rest -= read as u64;
    }
    Ok(count)
}

/// Returns the start of the line after an offset within line `line`, and its number.
fn next_line(file: &mut File, from: u64, line: u64) -> std::io::Result<(u64, u64)> {
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    (&*file).take(PART).read_to_end(&mut bytes)?;
    Ok(match memchr(b'\n', &bytes) {
        Some(at) => (from + at as u64 + 1, line + 1),
        None => (from, line),
    })
}

/// Returns the start of the last lines that a part holds after an offset, and the number of the first of them.
fn last_lines(file: &mut File, from: u64, line: u64) -> std::io::Result<(u64, u64)> {
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    (&*file).take(PART).read_to_end(&mut bytes)?;
    let ends: Vec<usize> = memchr_iter(b'\n', &bytes).collect();
    // The last line may have no end.
    let surplus = (ends.len() + 1).saturating_sub(LINES);
    Ok(match surplus.checked_sub(1).and_then(|last| ends.get(last)) {
        Some(at) => (from + *at as u64 + 1, line + surplus as u64),
        None => (from, line),
    })
}

/// Returns the start of a line and its number; the end of the log if it has fewer.
fn find_line(file: &mut File, number: u64) -> std::io::Result<(u64, u64)> {
    file.seek(SeekFrom::Start(0))?;
    let (mut line, mut offset, mut buffer) = (1, 0, vec![0; 256 << 10]);
    if number <= 1 {
        return Ok((0, 1));
    }
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok((offset, line));
        }
        for at in memchr_iter(b'\n', &buffer[..read]) {
            line += 1;
            if line == number {
                return Ok((offset + at as u64 + 1, line));
            }
        }
        offset += read as u64;
    }
}

fn matches(file: File, text: Option<&str>) -> std::io::Result<LogMatches> {
    let wanted: Vec<String> = match text {
        Some(text) => vec![text.to_lowercase()],
        None => ERRORS.map(str::to_owned).into(),
    };
    let finders: Vec<Finder<'_>> = wanted.iter().map(|text| Finder::new(text.as_bytes())).collect();
    let mut reader = BufReader::with_capacity(256 << 10, file);
    let mut found = LogMatches { lines: Vec::new(), count: 0 };
    let (mut line, mut lower, mut number) = (Vec::new(), Vec::new(), 0);
    loop {
        line.clear();
        let read = (&mut reader).take(LINE as u64).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(found);
        }
        number += 1;
        if line.last() == Some(&b'\n') {
            line.pop();
        } else {
            skip_line(&mut reader)?;
        }
        lower.clear();
        match std::str::from_utf8(&line) {
            Ok(text) if !text.is_ascii() => lower.extend_from_slice(text.to_lowercase().as_bytes()),
            _ => lower.extend(line.iter().map(u8::to_ascii_lowercase)),
        }
        if finders.iter().any(|finder| finder.find(&lower).is_some()) {
            found.count += 1;
            if found.lines.len() < MATCHES {
                found.lines.push(LogLine { number, bytes: line.clone() });
            }
        }
    }
}

/// Reads to the end of a line and forgets it.
fn skip_line(reader: &mut BufReader<File>) -> std::io::Result<()> {
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        match memchr(b'\n', buffer) {
            Some(at) => {
                reader.consume(at + 1);
                return Ok(());
            }
            None => {
                let all = buffer.len();
                reader.consume(all);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn log(text: &[u8]) -> (File, u64) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        file.rewind().unwrap();
        (file, text.len() as u64)
    }

    fn numbers(part: &LogPart) -> Vec<u64> {
        part.lines.iter().map(|line| line.number).collect()
    }

    #[test]
    fn parts_follow_each_other_without_gap_or_repetition() {
        let text: String = (1..=5000).map(|n| format!("line {n} {}\n", "x".repeat(n % 70))).collect();
        let mut place = LogPlace::After { offset: 0, line: 1 };
        let mut seen = Vec::new();
        loop {
            let (file, size) = log(text.as_bytes());
            let part = part(file, size, place, true).unwrap();
            if part.lines.is_empty() {
                assert_eq!((part.end, part.next), (size, 5001));
                break;
            }
            seen.extend(part.lines.iter().map(|line| String::from_utf8(line.bytes.clone()).unwrap()));
            place = LogPlace::After { offset: part.end, line: part.next };
        }
        assert_eq!(seen, text.lines().collect::<Vec<_>>());
    }

    #[test]
    fn numbers_are_those_of_the_whole_log() {
        let text: String = (1..=20_000).map(|n| format!("line {n}\n")).collect();
        let (file, size) = log(text.as_bytes());
        let end = part(file, size, LogPlace::End, false).unwrap();
        assert!(end.lines.iter().all(|line| line.bytes == format!("line {}", line.number).as_bytes()));
        let (file, size) = log(text.as_bytes());
        let middle = part(file, size, LogPlace::Line(12_345), false).unwrap();
        assert_eq!(numbers(&middle)[0], 12_335);
        assert_eq!(middle.lines[10].bytes, b"line 12345");
        let (file, size) = log(text.as_bytes());
        assert!(part(file, size, LogPlace::Line(99_999), false).unwrap().lines.is_empty());
    }

    #[test]
    fn the_end_of_a_log_of_short_lines_is_its_end() {
        for text in ["x\n".repeat(50_000), format!("{}last", "x\n".repeat(50_000))] {
            let count = text.lines().count() as u64;
            let (file, size) = log(text.as_bytes());
            let end = part(file, size, LogPlace::End, true).unwrap();
            assert_eq!((end.end, end.lines.last().unwrap().number), (size, count));
            assert!(end.lines.len() >= LINES - 1);
        }
    }

    #[test]
    fn a_line_that_is_being_written_waits_for_its_end() {
        let (file, size) = log(b"one\ntw");
        assert_eq!(numbers(&part(file, size, LogPlace::End, false).unwrap()), [1]);
        let (file, size) = log(b"one\ntw");
        assert_eq!(numbers(&part(file, size, LogPlace::End, true).unwrap()), [1, 2]);
        let (file, size) = log(&vec![b'x'; 200_000]);
        let long = part(file, size, LogPlace::After { offset: 0, line: 1 }, false).unwrap();
        assert_eq!((long.lines.len(), long.lines[0].bytes.len()), (1, LINE));
        assert_eq!(long.next, 1, "the rest is of the same line");
    }

    #[test]
    fn words_and_errors_are_found_in_any_case() {
        let (file, _) = log("fine\nERROR: no\n\u{c4}RGER\nit Failed\n".as_bytes());
        let errors = matches(file, None).unwrap();
        assert_eq!(errors.lines.iter().map(|line| line.number).collect::<Vec<_>>(), [2, 4]);
        let (file, _) = log("fine\nERROR: no\n\u{c4}RGER\nit Failed\n".as_bytes());
        assert_eq!(matches(file, Some("\u{e4}rger")).unwrap().lines[0].number, 3);
        let (file, _) = log([&vec![b'y'; 100_000][..], b"\nlast error\n"].concat().as_slice());
        assert_eq!(matches(file, None).unwrap().lines[0].number, 2);
    }
}
