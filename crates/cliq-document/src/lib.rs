//! YAML documents with positions: a tree, records checked against tables of fields, diagnostics, JSON Schemas.
//!
//! [`parse`] reads a document as a [`Node`] in which each key and value has its [`Span`]. [`Record::read`] checks a mapping against a
//! table of [`Field`]s and reports each unknown key, missing field and wrong type as a [`Diagnostic`] with a remedy. [`schema_of`] makes a
//! JSON Schema of the same table, and [`published_schema`] one with the address where editors find it.
//!
//! Absent on purpose: knowledge of any format. `team.yml` is in `cliq-workflow`, suites of evaluations are in `cliq-eval`.

mod diagnostic;
mod field;
mod record;
mod schema;
mod yaml;

pub use diagnostic::{Diagnostic, Severity, Span, count_by_severity, did_you_mean, finish, nearest};
pub use field::{Field, Type, may, must};
pub use record::{Located, Record};
pub use schema::{modeline, published_schema, schema_id, schema_of};
pub use yaml::{Entry, Kind, Node, parse};

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
