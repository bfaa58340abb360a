//! Prices of models (docs/models.md).

use std::collections::BTreeMap;

use crate::Usage;

/// Price of a model in US dollars per million tokens (setting `prices.<model>`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// Input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Input that was read from a cache; `None` if it costs as much as other input.
    pub cached: Option<f64>,
}

impl Price {
    /// The cost of a usage in US dollars.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> f64 {
        let cached = usage.tokens_cached.unwrap_or(0).min(usage.tokens_in);
        let fresh = usage.tokens_in - cached;
        #[expect(clippy::cast_precision_loss, reason = "numbers of tokens are far below 2^52")]
        let per_million = |tokens: u64, price: f64| tokens as f64 * price / 1e6;
        per_million(fresh, self.input)
            + per_million(cached, self.cached.unwrap_or(self.input))
            + per_million(usage.tokens_out, self.output)
    }
}

/// Prices by model.
///
/// ```
/// use cliq_protocol::{Price, Prices};
///
/// let mut prices = Prices::default();
/// let price = Price { input: 3.0, output: 15.0, cached: None };
/// prices.insert("claude-sonnet-4-5", price);
/// assert_eq!(prices.get("anthropic/claude-sonnet-4-5-20250929"), Some(&price));
/// assert_eq!(prices.get("claude-sonnet-4"), None);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prices {
    /// Prices that count where there is no other, in the order of the names of their models.
    known: &'static [(&'static str, Price)],
    own: BTreeMap<String, Price>,
}

impl Prices {
    /// Returns prices over a list that is in the order of its names: [`Self::insert`] replaces what it says. Nothing is copied.
    #[must_use]
    pub fn over(known: &'static [(&'static str, Price)]) -> Self {
        Self { known, own: BTreeMap::new() }
    }

    /// Sets the price of a model.
    pub fn insert(&mut self, model: impl Into<String>, price: Price) {
        self.own.insert(model.into(), price);
    }

    /// Returns the price of a model: by its name, or by the name without a provider before it (`openai/NAME`) and without the date of a version
    /// after it (`NAME-20250929`, `NAME-2025-09-29`).
    #[must_use]
    pub fn get(&self, model: &str) -> Option<&Price> {
        let name = model.rsplit('/').next().unwrap_or(model);
        self.of(model).or_else(|| self.of(name)).or_else(|| self.of(without_date(name)))
    }

    /// Returns the price under a name.
    fn of(&self, name: &str) -> Option<&Price> {
        self.own.get(name).or_else(|| {
            let at = self.known.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
            self.known.get(at).map(|(_, price)| price)
        })
    }

    /// Prices with the names of their models, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Price)> {
        let known = self.known.iter().map(|(model, price)| (*model, price));
        let own = self.own.iter().map(|(model, price)| (model.as_str(), price));
        known.chain(own).collect::<BTreeMap<_, _>>().into_iter()
    }
}

/// Returns a name without the date of a version at its end.
fn without_date(name: &str) -> &str {
    let is_date = |text: &str| match text.len() {
        8 => text.bytes().all(|byte| byte.is_ascii_digit()),
        10 => text.bytes().enumerate().all(|(n, byte)| match n {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        }),
        _ => false,
    };
    [9, 11]
        .into_iter()
        .filter_map(|length| name.split_at_checked(name.len().checked_sub(length)?))
        .find(|(_, end)| end.starts_with(['-', '@']) && is_date(&end[1..]))
        .map_or(name, |(head, _)| head)
}

#[cfg(test)]
mod tests {
    use super::*;

    static KNOWN: &[(&str, Price)] = &[("a", price(1.0)), ("c", price(3.0))];

    const fn price(input: f64) -> Price {
        Price { input, output: 9.0, cached: None }
    }

    #[test]
    fn own_prices_go_over_known_ones() {
        let mut prices = Prices::over(KNOWN);
        assert_eq!((prices.get("c-20250929"), prices.get("b")), (Some(&price(3.0)), None));
        for (model, input) in [("c", 4.0), ("b", 2.0), ("d", 5.0)] {
            prices.insert(model, price(input));
        }
        let all: Vec<(&str, f64)> = prices.iter().map(|(model, price)| (model, price.input)).collect();
        assert_eq!(all, [("a", 1.0), ("b", 2.0), ("c", 4.0), ("d", 5.0)]);
        assert_eq!(prices.get("openai/c"), Some(&price(4.0)));
    }

    #[test]
    fn versions_have_the_price_of_their_model() {
        for (name, model) in [
            ("gpt-5-2025-08-07", "gpt-5"),
            ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
            ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
            ("gpt-5-mini", "gpt-5-mini"),
            ("gpt-5-2025-08", "gpt-5-2025-08"),
            ("20250929", "20250929"),
            ("m-ä234567", "m-ä234567"),
            ("", ""),
        ] {
            assert_eq!(without_date(name), model);
        }
    }
}
