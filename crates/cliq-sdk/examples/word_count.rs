//! A whole agent: counts the words of the requirement and of what it was handed.

use cliq_sdk::{Agent, Handoff};
use serde_json::json;

fn main() -> std::process::ExitCode {
    Agent::new()
        .standard(|ctx| {
            let words = |text: &str| text.split_whitespace().count();
            let requirement = words(&ctx.requirement()?.unwrap_or_default());
            ctx.progress(format!("the requirement has {requirement} words"))?;
            let mut handed = 0;
            for received in ctx.incoming()? {
                handed += received.envelope.and_then(|e| e.text).map_or(0, |text| words(&text));
            }
            let data = json!({ "requirement": requirement, "handed": handed });
            ctx.send(&Handoff::text(format!("{requirement} words.")).with_data(data.clone()))?;
            Ok(ctx.complete(data))
        })
        .run()
}
