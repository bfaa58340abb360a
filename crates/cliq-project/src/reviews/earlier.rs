//! Comments of the round before, with what became of their lines and the answers of the phase that worked again.

use camino::{Utf8Path, Utf8PathBuf};
use cliq_protocol::PhaseName;
use cliq_review::{
    Content, EarlierComment, Fate, FileDiff, Outcome, Place, Review, ReviewState, answer_to, fate_of,
};

/// The most bytes of a file that is compared, and of a result that is read.
const LIMIT: u64 = 8 << 20;

/// Returns the comments on lines of a review that requested changes, as of now. `shown` is its content, `cliq_dir` the directory of the run.
pub(super) fn comments(
    review: &Review,
    shown: &Content,
    workspace: &Utf8Path,
    channels: &Utf8Path,
) -> Vec<EarlierComment> {
    let ReviewState::Decided { outcome: Outcome::ChangesRequested { to }, .. } = &review.state else {
        return Vec::new();
    };
    let results = results_of(to, channels);
    let on_lines = review.comments.iter().filter_map(|said| Some((said, said.comment.place.as_ref()?)));
    on_lines
        .enumerate()
        .map(|(n, (said, place))| EarlierComment {
            number: n as u64 + 1,
            actor: said.comment.actor.clone(),
            text: said.comment.text.clone(),
            place: place.clone(),
            fate: fate(place, shown, workspace),
            answer: results.iter().find_map(|result| answer_to(n + 1, result)),
        })
        .collect()
}

fn fate(place: &Place, shown: &Content, workspace: &Utf8Path) -> Fate {
    let files = || shown.diffs.iter().flat_map(|diff| diff.files.iter().map(move |file| (diff, file)));
    let found: Option<&FileDiff> =
        files().find(|(diff, file)| diff.path_of(file) == place.path()).map(|(_, file)| file);
    let path = workspace.join(place.path());
    match cliq_fs::read_within(&path, workspace, LIMIT) {
        Ok(bytes) => fate_of(place, found, Some(&String::from_utf8_lossy(&bytes))),
        Err(_) if !path.exists() => Fate::FileGone,
        Err(error) => Fate::Unknown { why: format!("the file cannot be read: {}", error.source) },
    }
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
