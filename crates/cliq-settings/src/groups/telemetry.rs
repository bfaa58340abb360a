//! Settings `telemetry.*`.

use std::collections::BTreeMap;

use super::group;
use crate::secret::Secret;

group! {
    /// Settings of traces, metrics and logs over OTLP. The variables of OpenTelemetry go before them.
    Person struct TelemetrySettings {
        "telemetry.endpoint", endpoint: Option<String> as Url,
            "the receiver of traces, metrics and logs over OTLP (HTTP, protobuf), such as http://localhost:4318; without it nothing is exported";
        "telemetry.headers.*", headers: BTreeMap<String, Secret>, "a header for the receiver, such as its key";
        "telemetry.signals", signals: Vec<String> as Signals,
            "what is exported, of traces, metrics and logs; without it all three";
        "telemetry.content", content: bool = "false",
            "whether prompts, answers, and arguments and results of tools are exported";
        "telemetry.trace_url", trace_url: Option<String> as TraceUrl,
            "the page of a trace, with {trace_id}, such as http://localhost:16686/trace/{trace_id}; pages of runs link to it";
    }
}
