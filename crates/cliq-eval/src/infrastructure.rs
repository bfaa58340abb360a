//! Recognition of infrastructure errors: those that say nothing about the team.

use std::sync::LazyLock;

use regex::RegexSet;

/// Patterns of errors of providers, networks and container engines.
static PATTERNS: LazyLock<Option<RegexSet>> = LazyLock::new(|| {
    let patterns = [
        // Limits and failures of a provider.
        r"(?i)\b(http|status|code|error)\W{0,3}(408|425|429|500|502|503|504|529)\b",
        r"(?i)\banswered (408|425|429|5\d\d)\b",
        r"(?i)\b(rate.?limit|too many requests|overloaded|quota exceeded|insufficient.quota|temporarily unavailable|service unavailable)",
        // Networks.
        r"(?i)\b(connection (refused|reset|closed|aborted|timed out)|network (is )?(unreachable|error|down)|no route to host|dns|name resolution|tls handshake|broken pipe)",
        r"(?i)(could not|cannot) (connect|resolve|reach)",
        r"(?i)\bthe answer of \S+ broke off",
        // Container engines and clusters.
        r"(?i)\b(docker|container engine|cluster|image)\b.{0,80}\b(not running|unavailable|cannot be (reached|pulled)|no space)",
        r"(?i)no space left on device|cannot allocate memory|too many open files",
        // Errors that an agent marks itself.
        r"(?i)^\s*infrastructure:",
    ];
    RegexSet::new(patterns).ok()
});

/// Whether the reason of a failed run is an infrastructure error.
#[must_use]
pub fn is_infrastructure(reason: &str) -> bool {
    PATTERNS.as_ref().is_some_and(|patterns| patterns.is_match(reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_providers_and_networks_are_told_from_those_of_teams() {
        for reason in [
            "claude-api: HTTP 429: rate limited",
            "openai-api answered 503; it was tried 4 times",
            "openai-api: status 503",
            "the provider is overloaded, try again",
            "connection refused (os error 111)",
            "error sending request: dns error: failed to lookup address",
            "the answer of gemini-api broke off: its end is missing",
            "infrastructure: the test database is down",
            "No space left on device",
        ] {
            assert!(is_infrastructure(reason), "{reason}");
        }
        for reason in [
            "phase `quality`: the budget of 3 iterations is spent",
            "command test: exit code 1: 429 tests failed",
            "the agent ended without a terminal message",
            "assertion failed: expected 500 items",
        ] {
            assert!(!is_infrastructure(reason), "{reason}");
        }
    }
}
