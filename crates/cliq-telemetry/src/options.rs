//! Options of the export: the variables of OpenTelemetry, then the settings `telemetry.*` (docs/telemetry.md).

use std::time::Duration;

use cliq_orchestrator::TraceSource;
use cliq_protocol::{TraceContext, TraceId};
use cliq_settings::{Secret, Settings, TelemetrySettings};

/// Default deadline of a request, as the OpenTelemetry specification has it.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Default time between exports of metrics.
const METRICS_INTERVAL: Duration = Duration::from_secs(60);
/// Default time between exports of spans.
const DELAY: Duration = Duration::from_secs(1);

/// Names of the signals.
const SIGNALS: [&str; 3] = ["traces", "metrics", "logs"];

/// Receiver of a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    /// Address that the data is posted to.
    pub url: String,
    /// Headers of each request.
    pub headers: Vec<(String, Secret)>,
    /// Deadline of a request.
    pub timeout: Duration,
    /// Whether requests are compressed.
    pub is_compressed: bool,
}

/// Receivers by signal; `None` for a signal that is not exported.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Signals {
    /// Traces.
    pub traces: Option<Signal>,
    /// Metrics.
    pub metrics: Option<Signal>,
    /// Logs.
    pub logs: Option<Signal>,
}

/// Choice of the traces that are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampler {
    /// Bound for traces without a caller.
    pub below: u64,
    /// Whether the decision of the caller goes before.
    pub follows_parent: bool,
}

impl Sampler {
    /// Whether a trace is recorded. `caller` is the span that it continues.
    #[must_use]
    pub fn is_sampled(self, trace: TraceId, caller: Option<TraceContext>) -> bool {
        match caller.filter(|_| self.follows_parent) {
            Some(caller) => caller.is_sampled,
            None => trace.sampling_value() < self.below,
        }
    }
}

/// Options of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportOptions {
    /// Receivers.
    pub signals: Signals,
    /// Attributes of the resource, with `service.name`. The client adds `service.instance.id`.
    pub resource: Vec<(String, String)>,
    /// Sampler.
    pub sampler: Sampler,
    /// Whether content is exported.
    pub content: bool,
    /// Time between exports of spans and logs.
    pub delay: Duration,
    /// Time between exports of metrics.
    pub metrics_interval: Duration,
    /// Maximum number of spans or lines in a request.
    pub batch_size: usize,
    /// Texts that are replaced in content: headers of the receiver, and secrets of the environment.
    pub secrets: Vec<String>,
}

/// Telemetry of this process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TelemetryOptions {
    /// Export, if there is a receiver.
    pub export: Option<ExportOptions>,
}

/// Reason why nothing can be exported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// A value that is not understood.
    #[error("{name}: {value:?} is not understood: {expected}")]
    Value {
        /// Variable or setting.
        name: String,
        /// Value.
        value: String,
        /// Remedy.
        expected: &'static str,
    },
    /// The address of one signal in place of the base address.
    #[error(
        "{name}: the address ends with that of one signal: write it without /v1/…, such as http://localhost:4318"
    )]
    SignalAddress {
        /// Variable or setting.
        name: String,
    },
    /// An address that is none. Addresses are not quoted, as they may have a password.
    #[error("{name}: the address of the receiver is not one: write it as http://localhost:4318")]
    Address {
        /// Variable or setting.
        name: String,
    },
}

impl TelemetryOptions {
    /// Reads the options. `get` gives variables of the environment.
    ///
    /// # Errors
    /// A variable or setting has a value that is not understood. Nothing is exported then; runs go on.
    pub fn read(get: impl Fn(&str) -> Option<String>, settings: &Settings) -> Result<Self, OptionsError> {
        let reader = Reader { get: &|name| get(name).filter(|value| !value.trim().is_empty()) };
        let settings = TelemetrySettings::read(settings);
        let export = reader.export(&settings)?;
        Ok(Self { export })
    }

    /// Returns the trace that a run is part of. `caller` is the span that asks for it.
    #[must_use]
    pub fn trace_source(&self, caller: Option<TraceContext>) -> TraceSource {
        match (caller, &self.export) {
            (Some(caller), Some(export)) => {
                let is_sampled = export.sampler.is_sampled(caller.trace, Some(caller));
                TraceSource::Within(TraceContext { is_sampled, ..caller })
            }
            (Some(caller), None) => TraceSource::Within(caller),
            (None, Some(export)) => TraceSource::Own { below: export.sampler.below },
            (None, None) => TraceSource::Off,
        }
    }
}

struct Reader<'a> {
    get: &'a dyn Fn(&str) -> Option<String>,
}

impl Reader<'_> {
    fn get(&self, name: &str) -> Option<String> {
        (self.get)(name)
    }

    fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
    }

    fn export(&self, settings: &TelemetrySettings) -> Result<Option<ExportOptions>, OptionsError> {
        let has_receiver = settings.endpoint.is_some()
            || ["", "TRACES_", "METRICS_", "LOGS_"]
                .iter()
                .any(|signal| self.get(&format!("OTEL_EXPORTER_OTLP_{signal}ENDPOINT")).is_some());
        if !has_receiver || self.is_true("OTEL_SDK_DISABLED") {
            return Ok(None);
        }
        let signals = Signals {
            traces: self.signal("traces", settings)?,
            metrics: self.signal("metrics", settings)?,
            logs: self.signal("logs", settings)?,
        };
        if signals == Signals::default() {
            return Ok(None);
        }
        let all = [&signals.traces, &signals.metrics, &signals.logs];
        let secrets = all.into_iter().flatten().flat_map(|signal| &signal.headers);
        let secrets = secrets.map(|(_, value)| value.reveal().to_owned()).collect();
        Ok(Some(ExportOptions {
            resource: self.resource()?,
            sampler: self.sampler()?,
            content: self.content(settings)?,
            delay: self.millis("OTEL_BSP_SCHEDULE_DELAY", DELAY)?,
            metrics_interval: self.millis("OTEL_METRIC_EXPORT_INTERVAL", METRICS_INTERVAL)?,
            batch_size: usize::try_from(self.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512)?)
                .unwrap_or(512)
                .clamp(1, 10_000),
            secrets,
            signals,
        }))
    }

    /// Receiver of a signal.
    fn signal(&self, signal: &str, settings: &TelemetrySettings) -> Result<Option<Signal>, OptionsError> {
        let upper = signal.to_uppercase();
        let exporter = format!("OTEL_{upper}_EXPORTER");
        match self.get(&exporter).as_deref().map(str::trim) {
            Some("none") => return Ok(None),
            None | Some("otlp") => {}
            Some(other) => {
                let expected = "write `otlp` or `none`";
                return Err(OptionsError::Value { name: exporter, value: other.to_owned(), expected });
            }
        }
        let chosen = &settings.signals;
        let own = format!("OTEL_EXPORTER_OTLP_{upper}_ENDPOINT");
        // A key goes to the receiver that its owner has named, and to no other that an environment names.
        let is_of_settings =
            |url: &str| settings.endpoint.as_deref().is_some_and(|own| is_same_place(own, url));
        let (name, url) = if let Some(url) = self.get(&own) {
            (own, url)
        } else if let Some(base) = self.get("OTEL_EXPORTER_OTLP_ENDPOINT") {
            ("OTEL_EXPORTER_OTLP_ENDPOINT".to_owned(), below(&base, signal))
        } else if let Some(base) = &settings.endpoint {
            if !chosen.is_empty() && !chosen.iter().any(|chosen| chosen == signal) {
                return Ok(None);
            }
            ("telemetry.endpoint".to_owned(), below(base, signal))
        } else {
            return Ok(None);
        };
        let url = url::Url::parse(url.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.ok_or_else(|| OptionsError::Address { name: name.clone() })?;
        if SIGNALS.iter().any(|one| url.path().contains(&format!("/v1/{one}/v1/"))) {
            return Err(OptionsError::SignalAddress { name });
        }
        let either = |suffix: &str| {
            let own = format!("OTEL_EXPORTER_OTLP_{upper}_{suffix}");
            let shared = format!("OTEL_EXPORTER_OTLP_{suffix}");
            self.get(&own)
                .map(|value| (own, value))
                .or_else(|| self.get(&shared).map(|value| (shared, value)))
        };
        if let Some((name, value)) = either("PROTOCOL").filter(|(_, value)| value.trim() != "http/protobuf") {
            return Err(OptionsError::Value { name, value, expected: "cliq speaks `http/protobuf`" });
        }
        let is_compressed = match either("COMPRESSION") {
            None => false,
            Some((name, value)) => match value.trim() {
                "gzip" => true,
                "none" => false,
                _ => return Err(OptionsError::Value { name, value, expected: "write `gzip` or `none`" }),
            },
        };
        let timeout = match either("TIMEOUT") {
            None => TIMEOUT,
            Some((name, _)) => self.millis(&name, TIMEOUT)?,
        };
        let own_headers = settings.headers.iter().filter(|_| is_of_settings(url.as_str()));
        let mut headers: Vec<(String, Secret)> =
            own_headers.map(|(name, value)| (name.to_lowercase(), value.clone())).collect();
        if let Some((name, value)) = either("HEADERS") {
            // The value may be a key, so that the error does not quote it.
            let pairs = pairs(&value).ok_or(OptionsError::Value {
                name,
                value: "…".to_owned(),
                expected: "write NAME=VALUE, separated by commas",
            })?;
            for (name, value) in pairs {
                let name = name.to_lowercase();
                headers.retain(|(known, _)| *known != name);
                headers.push((name, Secret::new(value)));
            }
        }
        Ok(Some(Signal { url: url.to_string(), headers, timeout, is_compressed }))
    }

    fn resource(&self) -> Result<Vec<(String, String)>, OptionsError> {
        let mut resource = vec![("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned())];
        let name = "OTEL_RESOURCE_ATTRIBUTES";
        if let Some(value) = self.get(name) {
            let all = pairs(&value).ok_or_else(|| OptionsError::Value {
                name: name.to_owned(),
                value: value.clone(),
                expected: "write NAME=VALUE, separated by commas",
            })?;
            for (name, value) in all {
                resource.retain(|(known, _)| *known != name);
                resource.push((name, value));
            }
        }
        let service = self.get("OTEL_SERVICE_NAME");
        if service.is_some() || !resource.iter().any(|(name, _)| name == "service.name") {
            resource.retain(|(known, _)| known != "service.name");
            resource.insert(0, ("service.name".to_owned(), service.unwrap_or_else(|| "cliq".to_owned())));
        }
        Ok(resource)
    }

    fn sampler(&self) -> Result<Sampler, OptionsError> {
        let name = "OTEL_TRACES_SAMPLER";
        let chosen = self.get(name).unwrap_or_else(|| "parentbased_always_on".to_owned());
        let chosen = chosen.trim();
        let (follows_parent, root) = match chosen.strip_prefix("parentbased_") {
            Some(root) => (true, root),
            None => (false, chosen),
        };
        let below = match root {
            "always_on" => TraceSource::ALL,
            "always_off" => 0,
            "traceidratio" => self.ratio()?,
            _ => {
                return Err(OptionsError::Value {
                    name: name.to_owned(),
                    value: chosen.to_owned(),
                    expected: "write `always_on`, `always_off` or `traceidratio`, with or without `parentbased_`",
                });
            }
        };
        Ok(Sampler { below, follows_parent })
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "the share is between 0 and 1, and the bound 2^63 at most"
    )]
    fn ratio(&self) -> Result<u64, OptionsError> {
        let name = "OTEL_TRACES_SAMPLER_ARG";
        let Some(text) = self.get(name) else { return Ok(TraceSource::ALL) };
        let share = text.trim().parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
        let share = share.ok_or_else(|| OptionsError::Value {
            name: name.to_owned(),
            value: text.clone(),
            expected: "write a number from 0 to 1",
        })?;
        Ok((share * TraceSource::ALL as f64) as u64)
    }

    fn content(&self, settings: &TelemetrySettings) -> Result<bool, OptionsError> {
        let name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
        let Some(value) = self.get(name) else { return Ok(settings.content) };
        match value.trim().to_ascii_lowercase().as_str() {
            "true" | "1" | "span_only" | "span_and_event" => Ok(true),
            "false" | "0" | "no_content" => Ok(false),
            // cliq has no such events.
            "event_only" => Ok(false),
            _ => {
                Err(OptionsError::Value { name: name.to_owned(), value, expected: "write `true` or `false`" })
            }
        }
    }

    fn number(&self, name: &str, default: u64) -> Result<u64, OptionsError> {
        let Some(value) = self.get(name) else { return Ok(default) };
        let expected = "write a whole number";
        value.trim().parse().map_err(|_| OptionsError::Value { name: name.to_owned(), value, expected })
    }

    fn millis(&self, name: &str, default: Duration) -> Result<Duration, OptionsError> {
        let default = u64::try_from(default.as_millis()).unwrap_or(u64::MAX);
        // A loop without a pause would use a whole core.
        Ok(Duration::from_millis(self.number(name, default)?.clamp(10, 86_400_000)))
    }
}

/// Whether two addresses are of the same server.
fn is_same_place(one: &str, other: &str) -> bool {
    let place = |text: &str| url::Url::parse(text.trim()).ok().map(|url| url.origin());
    place(one).is_some_and(|origin| place(other) == Some(origin))
}

/// Address of a signal below that of the receiver.
fn below(base: &str, signal: &str) -> String {
    format!("{}/v1/{signal}", base.trim().trim_end_matches('/'))
}

/// Names and values of a list as in W3C Baggage: separated by commas, values encoded as in a URL.
fn pairs(text: &str) -> Option<Vec<(String, String)>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let pair = |part: &str| {
        let (name, value) = part.split_once('=')?;
        let name = decoded(name.trim());
        (!name.is_empty()).then(|| (name, decoded(value.trim())))
    };
    parts.map(pair).collect()
}

fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| byte == b'%') {
            Some(decoded) => {
                out.push(decoded);
                at += 3;
            }
            None => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
