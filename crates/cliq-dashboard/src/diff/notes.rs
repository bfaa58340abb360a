//! Comments on lines: those that there are, and the form for another.

use cliq_review::{Comment, EarlierComment, Fate, Place, Review, Side};
use maud::{Markup, html};

use super::Viewer;
use super::rows::mark;
use crate::elements::ago;
use crate::text::shown;

/// The most characters of a comment, as a hint to browsers. The rule is that of the review or of the message.
const MAX_TEXT: usize = 15_000;

/// A comment that is shown at its line.
pub(crate) struct Note {
    /// The line.
    pub(crate) place: Place,
    body: Markup,
}

/// Form for comments.
pub(crate) struct CommentForm {
    /// Address that it is sent to.
    pub(crate) action: String,
    /// Label of the button.
    pub(crate) button: &'static str,
    /// Use of a comment, for the person.
    pub(crate) about: String,
    /// Phases that a message can be for. Empty if the comment goes to a review.
    pub(crate) phases: Vec<String>,
}

impl Note {
    /// Returns the comments on lines of a review. Those of the round before come with what became of them.
    /// `own` is the author whose comments can be withdrawn, with the address for that.
    pub(crate) fn of_review(
        review: &Review,
        earlier: &[EarlierComment],
        own: Option<(&str, &str)>,
    ) -> Vec<Self> {
        let withdraw = |comment: &Comment| {
            let (_, action) = own.filter(|(actor, _)| review.is_pending() && comment.actor == *actor)?;
            Some((action.to_owned(), comment.id.clone()))
        };
        let now = review.comments.iter().filter_map(|said| {
            let comment = &said.comment;
            let body = html! {
                p.facts { strong { (shown(comment.actor.as_bytes())) } span { (ago(said.at)) } span { "(" (comment.via.as_str()) ")" } }
                pre.text { (shown(comment.text.as_bytes())) }
                @if let Some((action, id)) = withdraw(comment) {
                    form.inline method="post" action=(action) {
                        input type="hidden" name="withdraw" value=(id);
                        button.ghost type="submit" { "Withdraw" }
                    }
                }
            };
            Some(Self { place: comment.place.clone()?, body })
        });
        // A line that is still there has the comment beside it, as it is now.
        let before = earlier.iter().filter_map(|comment| {
            let at = match &comment.fate {
                Fate::Kept { now } | Fate::Changed { now, .. } => *now,
                Fate::Elsewhere { .. } | Fate::Gone | Fate::FileGone | Fate::Unknown { .. } => return None,
            };
            let path = comment.renamed.as_deref().unwrap_or(comment.place.path());
            let place = Place::new(path, Side::New, at, comment.place.text()).ok()?;
            Some(Self { place, body: answered(comment) })
        });
        before.chain(now).collect()
    }
}

/// A comment of the round before, beside its answer.
pub(crate) fn answered(comment: &EarlierComment) -> Markup {
    html! {
        p.facts {
            span.badge { "[" (comment.number) "]" }
            strong { (shown(comment.actor.as_bytes())) } span { "in the round before" }
            span class=(if matches!(comment.fate, Fate::Kept { .. } | Fate::Unknown { .. }) { "badge waiting" } else { "badge" }) { (comment.sentence()) }
        }
        pre.text { (shown(comment.text.as_bytes())) }
        @match &comment.answer {
            Some(answer) => { p.small { "Answer" } pre.text { (shown(answer.as_bytes())) } }
            None => p.quiet.small { "The result of the phase has no answer to it." },
        }
    }
}

/// Section of the comments of the round before, each with what became of its line.
pub(crate) fn earlier(comments: &[EarlierComment]) -> Markup {
    html! {
        @if !comments.is_empty() {
            section #earlier aria-labelledby="earlier-title" {
                h2 #earlier-title { "Comments of the round before" }
                @for comment in comments {
                    div.card {
                        p { code { (shown(comment.place.to_string().as_bytes())) } }
                        pre class=(if matches!(comment.fate, Fate::Kept { .. }) { "text" } else { "text was" }) { (shown(comment.place.text().as_bytes())) }
                        @if let Fate::Changed { lines, .. } = &comment.fate { pre.text.now { @for line in lines { (shown(line.as_bytes())) "\n" } } }
                        (answered(comment))
                    }
                }
            }
        }
    }
}

/// Rows below a line: its comments, and the form if it was asked for.
pub(super) fn below(viewer: &Viewer<'_>, path: &str, line: Option<(Side, u64)>, columns: u32) -> Markup {
    let Some((side, number)) = line else { return html! {} };
    let is_here =
        |note: &&Note| note.place.path() == path && (note.place.side(), note.place.line()) == (side, number);
    let asked = viewer.at == Some((side, number)) && viewer.chosen == Some(path);
    let said = viewer.said == Some((side, number)) && viewer.chosen == Some(path);
    html! {
        @for (n, note) in viewer.notes.iter().filter(is_here).enumerate() {
            tr.note-row id=[(said && n == 0).then_some("said")] { td colspan=(columns) { div.note { (note.body) } } }
        }
        @if let Some(form) = viewer.form.filter(|_| asked) {
            tr.note-row { td colspan=(columns) { (comment_form(viewer, form, path, side, number)) } }
        }
    }
}

/// The form for a comment on a line.
pub(super) fn comment_form(
    viewer: &Viewer<'_>,
    form: &CommentForm,
    path: &str,
    side: Side,
    number: u64,
) -> Markup {
    html! {
        form.stack #comment method="post" action=(form.action) {
            // A form that is sent twice makes one comment.
            input type="hidden" name="id" value=(uuid::Uuid::now_v7());
            input type="hidden" name="path" value=(path);
            input type="hidden" name="at" value=(mark(side, number));
            @if viewer.split { input type="hidden" name="view" value="split"; }
            label for="comment-text" { "Comment on " @if side == Side::Old { "removed " } "line " (number) }
            textarea #comment-text name="text" rows="3" required maxlength=(MAX_TEXT) autofocus aria-describedby="comment-about" {}
            p.hint #comment-about { (form.about) }
            @if !form.phases.is_empty() {
                label for="comment-phase" { "For" }
                select #comment-phase name="phase" {
                    option value="" { "all agents at work" }
                    @for phase in &form.phases { option { (phase) } }
                }
            }
            div.actions {
                button.primary type="submit" { (form.button) }
                a.button href=(viewer.file_address(path)) data-cancel { "Cancel" }
            }
        }
    }
}

/// Side and number of a mark: `n12`, `o3`.
pub(crate) fn line_of(mark: &str) -> Option<(Side, u64)> {
    let side = match mark.as_bytes().first()? {
        b'n' => Side::New,
        b'o' => Side::Old,
        _ => return None,
    };
    Some((side, mark.get(1..)?.parse().ok().filter(|line| *line > 0)?))
}
