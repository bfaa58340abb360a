//! Comments of the round before, with what became of their lines and the answers of the phase that worked again.

use camino::{Utf8Path, Utf8PathBuf};
use cliq_protocol::{PhaseName, Timestamp};
use cliq_review::{
    AcceptedComment, Content, Diff, EarlierComment, Fate, FileBefore, FileDiff, Outcome, Place, Review,
    ReviewState, answer_to, fate_of,
};

use crate::{Checkpoint, CheckpointStore, Project};

/// The most bytes of a file that is compared, and of a result that is read.
const LIMIT: u64 = 8 << 20;

/// Returns the comments on lines of a review that requested changes, as of now. `shown` is its content, `diffs` are the changes now, `channels` the
/// directory of the channels of the run.
pub(super) fn comments(
    review: &Review,
    shown: &Content,
    diffs: &[Diff],
    project: &Project,
    channels: &Utf8Path,
) -> Vec<EarlierComment> {
    let ReviewState::Decided { outcome: Outcome::ChangesRequested { to }, .. } = &review.state else {
        return Vec::new();
    };
    let results = results_of(to, channels);
    let workspace = project.dir().workspace();
    let snapshot = snapshot(review, project);
    let on_lines = review.comments.iter().filter_map(|said| Some((said, said.comment.place.as_ref()?)));
    let earlier = |(n, (said, place)): (usize, (&AcceptedComment, &Place))| {
        let renamed = renamed(place, diffs);
        let path = workspace.join(renamed.as_deref().unwrap_or(place.path()));
        let before = snapshot
            .as_ref()
            .and_then(|(store, checkpoint)| store.read_file(checkpoint, place.path(), LIMIT).ok().flatten());
        let before = before.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let before = FileBefore { change: change_of(place, shown), text: before.as_deref() };
        let fate = match cliq_fs::read_within(&path, workspace, LIMIT) {
            Ok(bytes) => fate_of(place, before, Some(&String::from_utf8_lossy(&bytes))),
            Err(_) if !path.exists() => Fate::FileGone,
            Err(error) => Fate::Unknown { why: format!("the file cannot be read: {}", error.source) },
        };
        EarlierComment {
            number: n as u64 + 1,
            actor: said.comment.actor.clone(),
            text: said.comment.text.clone(),
            place: place.clone(),
            fate,
            renamed,
            answer: results.iter().find_map(|result| answer_to(n + 1, result)),
        }
    };
    on_lines.enumerate().map(earlier).collect()
}

/// Returns the files as they were when the review was made: the last checkpoint of the run before it. `None` if none was taken.
fn snapshot(review: &Review, project: &Project) -> Option<(CheckpointStore, Checkpoint)> {
    let store = project.checkpoint_store(&project.settings().ok()?).ok()?;
    let is_before = |checkpoint: &Checkpoint| {
        checkpoint.label.run == review.run_id.as_str()
            && Timestamp::parse(&checkpoint.ts).is_ok_and(|at| at <= review.created)
    };
    let last = store.list().ok()?.into_iter().rev().find(is_before)?;
    Some((store, last))
}

/// Returns the change of the file that was shown with a comment.
fn change_of<'a>(place: &Place, shown: &'a Content) -> Option<&'a FileDiff> {
    let mut files = shown.diffs.iter().flat_map(|diff| diff.files.iter().map(move |file| (diff, file)));
    files.find(|(diff, file)| diff.path_of(file) == place.path()).map(|(_, file)| file)
}

/// Returns the path of a file now, if git knows that it was renamed.
fn renamed(place: &Place, diffs: &[Diff]) -> Option<String> {
    let mut files = diffs.iter().flat_map(|diff| diff.files.iter().map(move |file| (diff, file)));
    let was = |diff: &Diff, file: &FileDiff| {
        let old = FileDiff { path: file.old_path.clone()?, ..FileDiff::default() };
        Some(diff.path_of(&old))
    };
    let found = files.find(|(diff, file)| was(diff, file).as_deref() == Some(place.path()));
    found.map(|(diff, file)| diff.path_of(file))
}

/// Returns the results of a phase, as its channels have them, each once. What cannot be read has no answers.
fn results_of(phase: &PhaseName, channels: &Utf8Path) -> Vec<String> {
    let entries = channels.read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
    let own = format!("{phase}--");
    let own = entries.filter(|entry| entry.file_name().starts_with(&own));
    let mut paths: Vec<Utf8PathBuf> = own.map(|entry| entry.path().to_owned()).collect();
    paths.sort();
    let mut results = Vec::new();
    for channel in paths {
        let envelope = cliq_fs::read_handoff(&channel, phase, LIMIT).ok().flatten();
        if let Some(text) = envelope.and_then(|envelope| envelope.text).filter(|text| !results.contains(text))
        {
            results.push(text);
        }
    }
    results
}
