#![no_main]

use libfuzzer_sys::fuzz_target;
use cliq_triggers::Template;
fuzz_target!(|input: (&str, &str)| {
    let Ok(template) = Template::parse(input.0) else { return };
    let values = serde_json::json!({"body": {"t": input.1}, "headers": {"x": input.1}});
    let _ = template.render_marked(values.as_object().expect("an object"), "NOTICE");
});
