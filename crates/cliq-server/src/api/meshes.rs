//! The meshes that the server is to join.

use std::sync::Arc;

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::errors::Reading;
use crate::a2a::mesh::status::MeshStatus;
use crate::app::App;
use cliq_web::Reader;

/// The meshes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MeshList {
    meshes: Vec<MeshStatus>,
}

/// The meshes that the server was started with, and whether it joined them.
#[utoipa::path(get, path = "/api/v1/meshes", operation_id = "list_meshes", tag = "server", responses((status = 200, body = MeshList), Reading))]
pub(crate) async fn list(_: Reader, State(app): State<Arc<App>>) -> axum::Json<MeshList> {
    axum::Json(MeshList { meshes: app.meshes.list() })
}
