//! Creation of tokens for callers.

use std::time::Duration;

use cliq_model::{NewToken, Scope, Secret, TokenKind};
use cliq_supervisor::internals::clock;

use crate::core::Core;
use crate::problem::Problem;

/// Longest validity of a token, in days.
const MAX_DAYS: u32 = 3650;

/// Creates a token for a caller. Only the returned secret contains the token: the store keeps a hash.
///
/// # Errors
/// Returns a problem if the label or the number of days is invalid, or if the store fails.
pub async fn create_token(
    core: &Core,
    label: &str,
    scope: Scope,
    expires_days: Option<u32>,
) -> Result<Secret, Problem> {
    let label = label.trim();
    if label.is_empty() || label.chars().count() > 100 || label.chars().any(char::is_control) {
        return Err(Problem::unprocessable("`label` is a line of 1 to 100 characters", Vec::new()));
    }
    if expires_days.is_some_and(|days| !(1..=MAX_DAYS).contains(&days)) {
        let detail = format!("`expires_days` is a number from 1 to {MAX_DAYS}");
        return Err(Problem::unprocessable(detail, Vec::new()));
    }
    let expires = expires_days.map(|days| clock::after(Duration::from_secs(u64::from(days) * 86_400)));
    let made = NewToken::generate(TokenKind::Api, label, scope, clock::now(), expires);
    let (secret, token) = made.ok_or_else(|| Problem::unavailable("the system has no random numbers"))?;
    core.runs.add_token(&token).await?;
    Ok(secret)
}
