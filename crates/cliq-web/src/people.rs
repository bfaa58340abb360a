//! Reviewers among the people who sign in: identified by their verified mail address (docs/sign-in.md).

use cliq_model::Scope;
use cliq_review::{Directory, Review};

use crate::caller::Caller;
use crate::problem::Problem;

/// Directory of people (setting `hug.reviewers`).
#[derive(Debug, Clone, Default)]
pub struct People {
    directory: Directory,
}

impl People {
    /// Creates a directory of people.
    #[must_use]
    pub fn new(directory: Directory) -> Self {
        Self { directory }
    }

    /// Returns the mail addresses of a reviewer: the name itself, or the channels `email:` of the directory.
    fn addresses(&self, name: &str) -> Vec<String> {
        let channels = self.directory.channels(name).iter().filter(|channel| channel.agent == "email");
        let own = Some(name).filter(|name| name.contains('@'));
        channels.map(|channel| channel.target.as_str()).chain(own).map(str::to_lowercase).collect()
    }

    /// Returns the reviewer in whose name a caller answers. A person who signed in answers in their own name; in that of another reviewer
    /// only if no mail address of the reviewer is known, and with the scope `run`.
    ///
    /// # Errors
    /// Returns a problem if the caller may not answer, or it is not clear in whose name.
    pub fn reviewer_for(
        &self,
        review: &Review,
        caller: &Caller,
        named: Option<&str>,
    ) -> Result<String, Problem> {
        let general = || {
            let found = review.reviewer_for(named, &caller.label);
            found.map_err(|refusal| Problem::unprocessable(refusal.to_string(), Vec::new()))
        };
        let Some(person) = &caller.person else { return general() };
        let names = review.reviewers.names();
        let own =
            |mail: &str| names.iter().find(|name| self.addresses(name).iter().any(|address| address == mail));
        if let Some((mail, own)) = person.mail.as_deref().and_then(|mail| Some((mail, own(mail)?))) {
            return match named {
                Some(other) if other != *own => Err(Problem::forbidden(format!(
                    "you are signed in as {mail}, the reviewer {own}, and cannot answer for {other}"
                ))),
                _ => Ok((*own).to_owned()),
            };
        }
        if caller.scope < Scope::Run || names.iter().all(|name| !self.addresses(name).is_empty()) {
            let detail =
                format!("you are signed in as {}, who is not a reviewer of this review", caller.actor());
            return Err(Problem::forbidden(detail));
        }
        let reviewer = general()?;
        if self.addresses(&reviewer).is_empty() {
            return Ok(reviewer);
        }
        Err(Problem::forbidden(format!("only {reviewer} can answer in this name, signed in by mail address")))
    }
}
