//! Parameters of requests.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::rpc::RpcError;

/// Reads the parameters of a request.
///
/// # Errors
/// Returns an error with the method and the reason if they cannot be read.
pub(super) fn params<T: DeserializeOwned>(method: &str, params: Value) -> Result<T, RpcError> {
    let params = if params.is_null() { Value::Object(serde_json::Map::new()) } else { params };
    serde_json::from_value(params)
        .map_err(|error| invalid(format!("cannot read the parameters of `{method}`: {error}")))
}

/// Returns an error for invalid parameters.
pub(super) fn invalid(message: impl Into<String>) -> RpcError {
    RpcError::new(RpcError::INVALID_PARAMS, message)
}
