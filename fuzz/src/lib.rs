//! Parts that several fuzz targets share.

/// Values of templates: each is there and short.
pub struct Values;

impl cliq_workflow::Values for Values {
    fn input(&self, _: &str) -> Option<String> {
        Some("v".to_owned())
    }
    fn handoff(&self, _: &cliq_protocol::PhaseName) -> Result<serde_json::Value, String> {
        Ok(serde_json::json!({"a": [1, {"b": "c"}]}))
    }
    fn item(&self) -> Option<serde_json::Value> {
        None
    }
    fn index(&self) -> Option<u32> {
        Some(1)
    }
    fn team_name(&self) -> String {
        String::new()
    }
    fn date(&self) -> String {
        String::new()
    }
    fn timestamp(&self) -> String {
        String::new()
    }
    fn phase(&self) -> String {
        String::new()
    }
    fn run_id(&self) -> String {
        String::new()
    }
}
