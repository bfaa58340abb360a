//! Export over OTLP: HTTP with protobuf.

mod client;
mod encode;
mod exporter;

pub use client::{Client, ExportError};
pub use exporter::{ExportReport, Exporter};
