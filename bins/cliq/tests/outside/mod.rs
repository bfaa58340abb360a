//! Outside content: pull, push, connectors and tools, against servers that others wrote where there are any, and with every fault of a
//! network.

mod agents;
mod demo;
mod documents;
mod feature_dev;
mod google;
mod prism;
mod pull;
mod push;
mod s3;
mod services;
mod sharepoint;
pub(crate) mod site;
mod tools;
