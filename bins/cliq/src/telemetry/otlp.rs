//! Export of traces over OTLP: HTTP with protobuf, to where the variables of OpenTelemetry say.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::{Layer, Registry};

/// The longest that one export may take, and the end of the program may wait for the last one.
const PATIENCE: Duration = Duration::from_secs(5);

/// An exporter at work.
#[derive(Debug)]
pub(crate) struct Exporter {
    provider: SdkTracerProvider,
}

impl Exporter {
    /// An exporter, and the layer that feeds it.
    pub(crate) fn new() -> Result<(Self, impl Layer<Registry> + Send + Sync), String> {
        let agent = ureq::Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false)
            .user_agent(concat!("cliq/", env!("CARGO_PKG_VERSION")))
            .build()
            .into();
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Client(agent))
            .build()
            .map_err(|error| error.to_string())?;
        // `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` go before these.
        let resource = Resource::builder().with_attributes(service()).build();
        let provider =
            SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
        let tracer = provider.tracer("cliq");
        let layer =
            tracing_opentelemetry::layer().with_tracer(tracer).with_location(false).with_threads(false);
        Ok((Self { provider }, layer))
    }
}

fn service() -> Vec<opentelemetry::KeyValue> {
    let mut attributes = vec![opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION"))];
    if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
        attributes.push(opentelemetry::KeyValue::new("service.name", "cliq"));
    }
    attributes
}

impl Drop for Exporter {
    fn drop(&mut self) {
        // A collector that is away must not keep a program from ending.
        if let Err(error) = self.provider.shutdown_with_timeout(PATIENCE) {
            tracing::warn!(%error, "the last traces were not exported");
        }
    }
}

/// The HTTP client that cliq has anyway.
#[derive(Debug)]
struct Client(ureq::Agent);

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        // Called on the exporter's own thread, which may wait.
        let (parts, body) = request.into_parts();
        let response = self.0.run(Request::from_parts(parts, body.to_vec()))?;
        let (parts, mut body) = response.into_parts();
        Ok(Response::from_parts(parts, Bytes::from(body.read_to_vec()?)))
    }
}
