//! Usage of language models, for people.

use cliq_orchestrator::UsageSummary;

/// A number of tokens: `950`, `12.3k`, `4.56M`.
pub(crate) fn tokens(tokens: u64) -> String {
    match tokens {
        0..=9_999 => tokens.to_string(),
        10_000..=999_949 => format!("{}.{}k", tokens / 1000, tokens % 1000 / 100),
        _ => format!("{}.{:02}M", tokens / 1_000_000, tokens % 1_000_000 / 10_000),
    }
}

/// Tokens of a cell of a table. `≈` marks an estimate.
pub(crate) fn cell(usage: &UsageSummary) -> String {
    format!("{}{}", if usage.estimated { "≈" } else { "" }, tokens(usage.tokens()))
}

/// The end of a sentence about usage: `, estimated`, or nothing.
pub(crate) fn estimated(is_estimated: bool) -> &'static str {
    if is_estimated { ", estimated" } else { "" }
}

/// The cost, or that it is unknown.
pub(crate) fn cost(usage: &UsageSummary) -> String {
    usage.cost_usd.map_or("unknown".to_owned(), dollars)
}

/// An amount of US dollars; small amounts with four decimals.
pub(crate) fn dollars(amount: f64) -> String {
    if amount < 1.0 { format!("${amount:.4}") } else { format!("${amount:.2}") }
}

/// The usage in a sentence, without a full stop.
pub(crate) fn sentence(usage: &UsageSummary) -> String {
    let cached = match usage.tokens_cached {
        0 => String::new(),
        cached => format!(" ({} from a cache)", tokens(cached)),
    };
    let cost = match usage.cost_usd {
        Some(cost) => dollars(cost),
        None => "cost unknown (`prices.MODEL` in the settings gives a model its price)".to_owned(),
    };
    let estimated = estimated(usage.estimated);
    format!(
        "{} tokens in{cached}, {} out, {cost}{estimated}",
        tokens(usage.tokens_in),
        tokens(usage.tokens_out)
    )
}

#[cfg(test)]
mod tests {
    use cliq_protocol::Usage;

    use super::*;

    #[test]
    fn estimates_are_marked() {
        let exact = Usage { tokens_in: 12_345, tokens_out: 7, cost_usd: Some(0.5), ..Usage::default() };
        let shown = |usage: &Usage| {
            let summary = UsageSummary::of([usage]);
            (cell(&summary), sentence(&summary))
        };
        assert_eq!(shown(&exact), ("12.3k".to_owned(), "12.3k tokens in, 7 out, $0.5000".to_owned()));
        let estimate = Usage { estimated: true, ..exact };
        assert_eq!(
            shown(&estimate),
            ("≈12.3k".to_owned(), "12.3k tokens in, 7 out, $0.5000, estimated".to_owned())
        );
    }

    #[test]
    fn numbers_are_short() {
        let shown: Vec<String> = [0, 9_999, 10_000, 12_345, 999_949, 999_950, 4_567_890].map(tokens).into();
        assert_eq!(shown, ["0", "9999", "10.0k", "12.3k", "999.9k", "0.99M", "4.56M"]);
        assert_eq!((dollars(0.0125), dollars(12.345)), ("$0.0125".to_owned(), "$12.35".to_owned()));
    }
}
