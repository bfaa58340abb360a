//! Export of runs over OTLP (docs/telemetry.md) to a receiver that decodes requests with the classes that OpenTelemetry publishes.

pub(crate) mod collector;
mod context;
mod plans;
mod receivers;
mod runs;
mod server;
