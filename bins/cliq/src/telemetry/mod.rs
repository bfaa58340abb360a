//! Diagnostics of the two programs (docs/diagnostics.md): log lines for developers and operators; and the export of runs (docs/telemetry.md).
//!
//! The libraries of cliq describe what they do with `tracing`. Without a subscriber that costs next to nothing. [`init`]
//! sets one up where the caller asks for it: log lines on standard error. What a user
//! is told is not part of this: that is a `RunEvent`.

use std::io::IsTerminal;

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

/// The crates that belong to cliq: those that a level without a target is about.
const CRATES: &[&str] = &[
    "cliq",
    "cliq_agents",
    "cliq_gateway",
    "cliq_lifecycle",
    "cliq_mcp",
    "cliq_orchestrator",
    "cliq_project",
    "cliq_http",
    "cliq_server",
];

/// Requested diagnostics.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    /// A filter such as `debug` or `cliq_orchestrator=trace` (variable `CLIQ_LOG`). Goes before `verbosity`.
    pub(crate) filter: Option<String>,
    /// Number of `-v` options: 1 for information, 2 for debugging, 3 for everything.
    pub(crate) verbosity: u8,
    /// Whether log lines are JSON (variable `CLIQ_LOG_FORMAT=json`).
    pub(crate) json: bool,
}

impl Options {
    /// The options of an environment, whose variables `get` gives.
    #[must_use]
    pub(crate) fn of(get: impl Fn(&str) -> Option<String>, verbosity: u8) -> Self {
        Self {
            filter: get("CLIQ_LOG").filter(|filter| !filter.is_empty()),
            verbosity,
            json: get("CLIQ_LOG_FORMAT").is_some_and(|format| format.eq_ignore_ascii_case("json")),
        }
    }

    fn is_silent(&self) -> bool {
        self.filter.is_none() && self.verbosity == 0
    }

    fn log_filter(&self) -> Result<EnvFilter, TelemetryError> {
        let level = match self.verbosity {
            0 | 1 => "info",
            2 => "debug",
            _ => "trace",
        };
        let wanted = self.filter.as_deref().unwrap_or(level);
        // A level alone is about cliq, and not about each library that it uses.
        let is_level = wanted.parse::<tracing::Level>().is_ok();
        let directives = if is_level {
            CRATES.iter().map(|name| format!("{name}={wanted}")).collect::<Vec<_>>().join(",")
        } else {
            wanted.to_owned()
        };
        EnvFilter::try_new(&directives)
            .map_err(|error| TelemetryError::Filter { filter: wanted.to_owned(), message: error.to_string() })
    }
}

/// Reason why diagnostics cannot be set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TelemetryError {
    /// The filter is none.
    #[error(
        "CLIQ_LOG: {filter:?} is not a filter: {message}; write a level such as `debug`, or `cliq_orchestrator=trace`"
    )]
    Filter {
        /// The filter.
        filter: String,
        /// Problem of the request.
        message: String,
    },
}

/// Sets diagnostics up for this process. Does nothing where nothing is wanted, or where a subscriber is there already.
///
/// # Errors
/// The filter is none.
pub(crate) fn init(options: &Options) -> Result<(), TelemetryError> {
    if options.is_silent() {
        return Ok(());
    }
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let filter = options.log_filter()?;
    let layer: Box<dyn Layer<Registry> + Send + Sync> = if options.json {
        lines.json().flatten_event(true).with_filter(filter).boxed()
    } else {
        let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        lines.compact().with_ansi(colour).with_filter(filter).boxed()
    };
    // A program that embeds cliq may have a subscriber of its own.
    let _ = tracing_subscriber::registry().with(layer).try_init();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(variables: &[(&str, &str)]) -> Options {
        let get =
            |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        Options::of(get, 0)
    }

    #[test]
    fn nothing_is_wanted_unless_asked_for() {
        let none = options(&[("CLIQ_LOG", "")]);
        assert!(none.is_silent() && !none.json);
    }

    #[test]
    fn a_level_is_about_cliq_alone() {
        let filter = |text: &str| options(&[("CLIQ_LOG", text)]).log_filter().map(|f| f.to_string());
        assert!(filter("debug").unwrap().contains("cliq_orchestrator=debug"));
        assert_eq!(filter("cliq_agents=trace").unwrap(), "cliq_agents=trace");
        let error = filter("cliq=loud").unwrap_err().to_string();
        assert!(error.contains("CLIQ_LOG") && error.contains("loud"), "{error}");
        let verbose = Options { verbosity: 2, ..Options::default() };
        assert!(verbose.log_filter().unwrap().to_string().contains("cliq_orchestrator=debug"));
    }
}
