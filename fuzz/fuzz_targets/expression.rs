#![no_main]

use libfuzzer_sys::fuzz_target;
use cliq_expr::Expression;
fuzz_target!(|input: (&str, &[u8])| {
    let Ok(expression) = Expression::parse(input.0) else { return };
    let values = serde_json::from_slice(input.1).unwrap_or_default();
    if let Err(error) = expression.evaluate(&values) {
        assert!(error.to_string().len() < 1000);
    }
});
