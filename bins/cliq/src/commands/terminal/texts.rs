//! Parts of logs and transcripts.

use std::io::{self, Read, Seek, SeekFrom};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_terminal::{TextKind, TextPart, TextPlace, TextRequest};

/// Size of a part in bytes.
const PART: u64 = 64 << 10;
/// Size up to which the beginning of a long line is looked for, in bytes.
const LONG: u64 = 2 << 20;

/// Returns a part of a text. `root` is the directory of the run's files.
pub(super) fn part(root: &Utf8Path, request: &TextRequest) -> io::Result<TextPart> {
    let files = files(root, request.phase.as_deref(), request.kind);
    let chosen = match &request.file {
        Some(name) => files.iter().find(|file| file.file_name() == Some(name)),
        None => files.last(),
    };
    let names = files.iter().filter_map(|file| Some(file.file_name()?.to_owned())).collect();
    let Some(path) = chosen else { return Ok(TextPart { files: names, ..TextPart::default() }) };
    let (mut file, size) = match cliq_fs::open_regular(path) {
        Ok(opened) => opened,
        Err(error) if error.is_not_found() => return Ok(TextPart::default()),
        Err(error) => return Err(io::Error::other(error.to_string())),
    };
    let mut read = |from: u64, to: u64| -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(from))?;
        (&mut file).take(to.saturating_sub(from)).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let mut found = None;
    let (mut start, mut bytes) = if let Some(text) = &request.find {
        found = find(size, request.place, text, &mut read)?;
        let around = found.unwrap_or(size);
        let (start, mut bytes) = before(around, &mut read)?;
        bytes.extend(read(around, size.min(around + PART * 2))?);
        (start, bytes)
    } else {
        match request.place {
            TextPlace::After(from) => (from, read(from, size.min(from.saturating_add(PART * 4)))?),
            TextPlace::End => before(size, &mut read)?,
            TextPlace::Before(end) => before(end.min(size), &mut read)?,
        }
    };
    // A line of a transcript that is being written is read when it is whole.
    if request.kind == TextKind::Transcript && !bytes.ends_with(b"\n") {
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        bytes.truncate(whole);
    }
    if bytes.is_empty() && request.place == TextPlace::End {
        start = size;
    }
    let file = path.file_name().unwrap_or_default().to_owned();
    Ok(TextPart { file, files: names, start, bytes, size, found })
}

/// Finds a line that has a text, ignoring case. Returns its offset.
fn find(
    size: u64,
    place: TextPlace,
    text: &str,
    read: &mut impl FnMut(u64, u64) -> io::Result<Vec<u8>>,
) -> io::Result<Option<u64>> {
    let text = text.to_lowercase();
    let has = |line: &[u8]| String::from_utf8_lossy(line).to_lowercase().contains(&text);
    let (mut from, mut end, forward) = match place {
        TextPlace::After(from) => (from, size, true),
        TextPlace::Before(end) => (0, end.min(size), false),
        TextPlace::End => (0, size, false),
    };
    while from < end {
        let (start, bytes) =
            if forward { (from, read(from, end.min(from + LONG))?) } else { before_in(end, LONG, read)? };
        if bytes.is_empty() {
            break;
        }
        let mut offset = start;
        let mut lines: Vec<(u64, &[u8])> = Vec::new();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            lines.push((offset, line));
            offset += line.len() as u64;
        }
        if forward {
            // The last line may be cut: the next part has it whole.
            if offset < end && lines.len() > 1 {
                lines.pop();
            }
            if let Some((own, _)) = lines.iter().find(|(_, line)| has(line)) {
                return Ok(Some(*own));
            }
            from = lines.last().map_or(end, |(own, line)| own + line.len() as u64);
        } else {
            if let Some((own, _)) = lines.iter().rev().find(|(_, line)| has(line)) {
                return Ok(Some(*own));
            }
            end = start;
        }
    }
    Ok(None)
}

/// Reads the lines before an offset: those that begin in the last part, or one long line.
fn before(end: u64, read: &mut impl FnMut(u64, u64) -> io::Result<Vec<u8>>) -> io::Result<(u64, Vec<u8>)> {
    before_in(end, PART, read)
}

/// As [`before`], with the size of the part.
fn before_in(
    end: u64,
    part: u64,
    read: &mut impl FnMut(u64, u64) -> io::Result<Vec<u8>>,
) -> io::Result<(u64, Vec<u8>)> {
    let mut size = part;
    loop {
        let from = end.saturating_sub(size);
        let mut bytes = read(from, end)?;
        if from == 0 {
            return Ok((0, bytes));
        }
        // The last byte ends the last line, and begins none.
        let body = &bytes[..bytes.len().saturating_sub(1)];
        match body.iter().position(|byte| *byte == b'\n') {
            Some(at) => {
                bytes.drain(..=at);
                return Ok((from + at as u64 + 1, bytes));
            }
            None if size >= LONG => return Ok((from, bytes)),
            None => size = (size * 4).min(LONG),
        }
    }
}

/// Files of a phase, oldest first; without a phase the log of the orchestrator.
fn files(root: &Utf8Path, phase: Option<&str>, kind: TextKind) -> Vec<Utf8PathBuf> {
    let Some(phase) = phase else {
        return match kind {
            TextKind::Log => vec![root.join("orchestrator.log")],
            TextKind::Transcript => Vec::new(),
        };
    };
    // Phases of a team phase have files of their own.
    let (mut root, mut phase) = (root.to_owned(), phase);
    while let Some((outer, inner)) = phase.split_once('/') {
        root = root.join("teams").join(outer);
        phase = inner;
    }
    let dir = root.join(match kind {
        TextKind::Log => "logs",
        TextKind::Transcript => "transcripts",
    });
    let prefix = format!("{phase}.");
    let entries = dir.read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
    let mut found: Vec<_> = entries
        .filter(|entry| entry.file_name().strip_prefix(&prefix).is_some_and(|rest| !is_of_item(rest)))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.into_path())))
        .collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

/// Whether the rest of a file name is one of an item: `INDEX.N.log`.
fn is_of_item(rest: &str) -> bool {
    let mut parts = rest.split('.');
    let is_number = |part: Option<&str>| part.is_some_and(|part| part.bytes().all(|b| b.is_ascii_digit()));
    is_number(parts.next()) && is_number(parts.next())
}

#[cfg(test)]
mod tests {
    use cliq_terminal::RunKey;

    use super::*;

    fn request(place: TextPlace) -> TextRequest {
        let (phase, file) = (Some("work".to_owned()), None);
        TextRequest { run: RunKey::new("r"), phase, kind: TextKind::Log, file, place, find: None }
    }

    #[test]
    fn parts_are_whole_lines_and_add_up() {
        let temp = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(temp.path()).unwrap();
        std::fs::create_dir(root.join("logs")).unwrap();
        let text: String = (0..30_000).map(|n| format!("line {n}\n")).collect();
        std::fs::write(root.join("logs/work.1.log"), &text).unwrap();
        std::fs::write(root.join("logs/work.0.1.log"), "of an item\n").unwrap();
        let last = part(root, &request(TextPlace::End)).unwrap();
        assert_eq!(last.files, ["work.1.log"]);
        assert_eq!(last.size, text.len() as u64);
        let mut all = last.bytes.clone();
        let mut start = last.start;
        while start > 0 {
            let part = part(root, &request(TextPlace::Before(start))).unwrap();
            assert!(part.bytes.starts_with(b"line ") && part.bytes.ends_with(b"\n"));
            start = part.start;
            all.splice(0..0, part.bytes);
        }
        assert_eq!(String::from_utf8(all).unwrap(), text);
        let rest = part(root, &request(TextPlace::After(text.len() as u64 - 11))).unwrap();
        assert_eq!(rest.bytes, b"line 29999\n");
    }

    #[test]
    fn lines_are_found_in_both_directions() {
        let temp = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(temp.path()).unwrap();
        std::fs::create_dir(root.join("logs")).unwrap();
        let mut text: String = (0..500_000).map(|n| format!("line {n}\n")).collect();
        text.push_str("the Ünd");
        std::fs::write(root.join("logs/work.1.log"), &text).unwrap();
        let find = |wanted: &str, place| {
            let request = TextRequest { find: Some(wanted.to_owned()), ..request(place) };
            let part = part(root, &request).unwrap();
            part.found.map(|found| {
                let at = usize::try_from(found - part.start).unwrap();
                let line = part.bytes[at..].split(|byte| *byte == b'\n').next().unwrap();
                (found, String::from_utf8_lossy(line).into_owned())
            })
        };
        let line = |n: usize| (text.find(&format!("line {n}\n")).unwrap() as u64, format!("line {n}"));
        assert_eq!(find("LINE 4711", TextPlace::End), Some(line(471_199)));
        assert_eq!(find("line 4711", TextPlace::Before(line(471_100).0)), Some(line(47_119)));
        assert_eq!(find("line 4711", TextPlace::Before(line(4711).0)), None);
        assert_eq!(find("line 4711", TextPlace::After(0)), Some(line(4711)));
        assert_eq!(find("line 4711", TextPlace::After(line(4712).0)), Some(line(47_110)));
        assert_eq!(find("ünd", TextPlace::After(0)).unwrap().1, "the Ünd");
        assert_eq!(find("nowhere", TextPlace::End), None);
    }

    #[test]
    fn long_lines_and_missing_files_are_shown_as_far_as_they_are_there() {
        let temp = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(temp.path()).unwrap();
        assert_eq!(part(root, &request(TextPlace::End)).unwrap(), TextPart::default());
        std::fs::create_dir(root.join("logs")).unwrap();
        std::fs::write(root.join("logs/work.1.log"), "x".repeat(5 << 20)).unwrap();
        let last = part(root, &request(TextPlace::End)).unwrap();
        assert_eq!(last.bytes.len(), 2 << 20);
    }
}
