//! `cliq logs`

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read, Seek, SeekFrom};
use std::process::ExitCode;
use std::time::Duration;

use camino::Utf8PathBuf;
use cliq_fs::{CliqDir, ProjectLock, transcripts_of};
use cliq_protocol::TranscriptEntry;

use crate::failure::Failure;
use crate::render::transcript;
use crate::{project, ui};

const STEP: Duration = Duration::from_millis(200);

/// Content to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Output of the orchestrator, or of a phase.
    Output,
    /// Transcripts of a phase, for people.
    Transcript,
    /// Lines of the transcripts of a phase.
    TranscriptLines,
}

pub(super) fn run(phase: Option<&str>, follow: bool, content: Content) -> Result<ExitCode, Failure> {
    let project = project::open()?;
    let dir = project.dir();
    if let Some(phase) = phase {
        let workflow = project.workflow()?;
        if workflow.find(phase).is_none() {
            let names: Vec<String> = workflow.phases().map(|(_, p)| p.name.to_string()).collect();
            let near = cliq_workflow::nearest(phase, names.iter().map(String::as_str));
            let hint = near.map_or_else(
                || format!("it has {}", names.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            return Err(Failure::usage(format!("the team has no phase `{phase}`")).hint(hint));
        }
    }
    let mut printed: HashMap<Utf8PathBuf, u64> = HashMap::new();
    loop {
        let running = ProjectLock::holder(dir)?.is_some();
        let files = match phase.filter(|_| content != Content::Output) {
            Some(phase) => {
                transcripts_of(&dir.transcripts(), phase)?.into_iter().map(|(_, path)| path).collect()
            }
            None => files(dir, phase)?,
        };
        for file in files {
            print_new(&file, phase.is_some(), content, &mut printed)?;
        }
        if !(follow && running) {
            break;
        }
        std::thread::sleep(STEP);
    }
    if printed.is_empty() {
        let what = phase.map_or("the orchestrator has".to_owned(), |phase| format!("phase `{phase}` has"));
        ui::hint(&match content {
            Content::Output => format!("{what} printed nothing"),
            _ => format!("{what} no transcript: only language models have one"),
        });
    }
    Ok(ExitCode::SUCCESS)
}

/// The orchestrator's log, or every log of a phase, oldest first.
fn files(dir: &CliqDir, phase: Option<&str>) -> Result<Vec<Utf8PathBuf>, Failure> {
    let Some(phase) = phase else { return Ok(vec![dir.orchestrator_log()]) };
    let prefix = format!("{phase}.");
    let mut found = Vec::new();
    let entries = match dir.logs().read_dir_utf8() {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_name().starts_with(&prefix) {
            found.push((entry.metadata()?.modified()?, entry.into_path()));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

fn print_new(
    file: &Utf8PathBuf,
    title: bool,
    content: Content,
    printed: &mut HashMap<Utf8PathBuf, u64>,
) -> Result<(), Failure> {
    let (mut handle, length) = match cliq_fs::open_regular(file) {
        Ok(opened) => opened,
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let at = printed.get(file).copied();
    if at == Some(length) || (at.is_none() && length == 0) {
        return Ok(());
    }
    if title && at.is_none() && content != Content::TranscriptLines {
        ui::line(ui::paint(ui::BOLD, format!("==> {} <==", file.file_name().unwrap_or_default())))?;
    }
    let start = at.filter(|at| *at <= length).unwrap_or(0);
    handle.seek(SeekFrom::Start(start))?;
    if content == Content::Transcript {
        // A line that is being written is read the next time.
        let mut text = Vec::new();
        handle.read_to_end(&mut text)?;
        let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        // With `--follow` a result may come in a later part than its call: it has no name then.
        let mut calls = BTreeMap::new();
        for line in text[..whole].split(|&byte| byte == b'\n') {
            if let Ok(entry) = TranscriptEntry::decode(line) {
                transcript::show(&entry, &mut calls)?;
            }
        }
        printed.insert(file.clone(), start + whole as u64);
        return Ok(());
    }
    let mut buffer = vec![0; 64 * 1024];
    let mut position = start;
    loop {
        let n = handle.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        ui::raw(&buffer[..n])?;
        position += n as u64;
    }
    printed.insert(file.clone(), position);
    Ok(())
}
