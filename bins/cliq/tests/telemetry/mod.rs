//! Export of runs over OTLP (docs/telemetry.md) to a receiver that decodes requests with the classes that OpenTelemetry publishes.

mod collector;
mod context;
mod receivers;
mod runs;
