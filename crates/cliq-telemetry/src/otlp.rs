//! Export over OTLP: HTTP with protobuf.

mod backoff;
mod client;
mod encode;
mod exporter;
mod process;

pub use client::{Client, ExportError};
pub use exporter::{ExportReport, Exporter};
pub use process::ProcessExporter;
