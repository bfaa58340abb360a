//! Images that a model asks to see. The caller loads them: a result names their paths.

use schemars::JsonSchema;
use serde::Deserialize;

/// Arguments of `read_image`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct ReadImage {
    /// Path of the image, relative to the workspace.
    pub(super) path: String,
}
