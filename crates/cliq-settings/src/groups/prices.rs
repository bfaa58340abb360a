//! Settings `prices.*`.

use std::collections::BTreeMap;

use cliq_protocol::{Price, Prices};

use super::group;
use crate::layers::Settings;
use crate::value::names;

group! {
    /// Prices of a model.
    Shared struct PriceSettings of model {
        "prices.*.in", input: Option<f64>,
            "what a model costs for input, in US dollars per million tokens; for agents that report no cost";
        "prices.*.out", output: Option<f64>,
            "what a model costs for output, in US dollars per million tokens";
        "prices.*.cached", cached: Option<f64>,
            "what a model costs for input from a cache, in US dollars per million tokens; without it, as other input";
    }
}

/// Date of the built-in prices.
pub const PRICES_DATE: &str = "2026-11-27";

/// Built-in prices by model: input, output, and input from a cache, as the vendors publish them for usual requests.
static BUILT_IN: &[(&str, Price)] = &[
    ("claude-fable-5", price(10.0, 50.0, Some(1.0))),
    ("claude-fable-5-1", price(10.0, 50.0, Some(0.25))),
    ("claude-haiku-4-5", price(1.0, 5.0, Some(0.1))),
    ("claude-haiku-5-5", price(0.1, 0.5, Some(0.01))),
    ("claude-opus-4-5", price(5.0, 25.0, Some(0.5))),
    ("claude-opus-4-6", price(5.0, 25.0, Some(0.5))),
    ("claude-opus-4-7", price(5.0, 25.0, Some(0.5))),
    ("claude-opus-4-8", price(5.0, 25.0, Some(0.5))),
    ("claude-opus-5", price(5.0, 25.0, Some(0.5))),
    ("claude-opus-5-5", price(4.0, 20.0, Some(0.2))),
    ("claude-sonnet-4-5", price(3.0, 15.0, Some(0.3))),
    ("claude-sonnet-4-6", price(3.0, 15.0, Some(0.3))),
    ("claude-sonnet-5", price(2.0, 10.0, Some(0.2))),
    ("claude-sonnet-5-5", price(2.0, 10.0, Some(0.1))),
    ("gemini-2.5-flash", price(0.3, 2.5, Some(0.03))),
    ("gemini-2.5-flash-lite", price(0.1, 0.4, Some(0.01))),
    ("gemini-2.5-pro", price(1.25, 10.0, Some(0.125))),
    ("gemini-3-flash-preview", price(0.5, 3.0, Some(0.05))),
    ("gemini-3.1-flash-lite", price(0.25, 1.5, Some(0.025))),
    ("gemini-3.1-pro-preview", price(2.0, 12.0, Some(0.2))),
    ("gemini-3.1-pro-preview-customtools", price(2.0, 12.0, Some(0.2))),
    ("gemini-3.5-flash", price(1.5, 9.0, Some(0.15))),
    ("gemini-3.5-flash-lite", price(0.3, 2.5, Some(0.03))),
    ("gemini-3.6-flash", price(0.75, 3.75, Some(0.075))),
    ("gemini-3.7-flash", price(0.75, 3.75, Some(0.075))),
    ("gemini-3.8-flash", price(0.75, 3.75, Some(0.075))),
    ("gpt-4.1", price(2.0, 8.0, Some(0.5))),
    ("gpt-4.1-mini", price(0.4, 1.6, Some(0.1))),
    ("gpt-5", price(1.25, 10.0, Some(0.125))),
    ("gpt-5-mini", price(0.25, 2.0, Some(0.025))),
    ("gpt-5-nano", price(0.05, 0.4, Some(0.005))),
    ("gpt-5-pro", price(15.0, 120.0, None)),
    ("gpt-5.1", price(1.25, 10.0, Some(0.125))),
    ("gpt-5.2", price(1.75, 14.0, Some(0.175))),
    ("gpt-5.3-codex", price(1.75, 14.0, Some(0.175))),
    ("gpt-5.4", price(2.5, 15.0, Some(0.25))),
    ("gpt-5.4-mini", price(0.75, 4.5, Some(0.075))),
    ("gpt-5.4-nano", price(0.2, 1.25, Some(0.02))),
    ("gpt-5.4-pro", price(30.0, 180.0, None)),
    ("gpt-5.5", price(5.0, 30.0, Some(0.5))),
    ("gpt-5.5-pro", price(30.0, 180.0, None)),
    ("gpt-5.6", price(4.0, 20.0, Some(0.4))),
    ("gpt-5.6-luna", price(0.2, 1.2, Some(0.02))),
    ("gpt-5.6-sol", price(4.0, 20.0, Some(0.4))),
    ("gpt-5.6-terra", price(2.0, 12.0, Some(0.2))),
    ("gpt-6-astra", price(10.0, 50.0, Some(1.0))),
    ("gpt-6-luna", price(0.1, 0.5, Some(0.01))),
    ("gpt-6-sol", price(2.0, 10.0, Some(0.2))),
    ("gpt-6.1-sol", price(2.0, 10.0, Some(0.1))),
    ("gpt-6.1-terra", price(1.0, 5.0, Some(0.05))),
];

const fn price(input: f64, output: f64, cached: Option<f64>) -> Price {
    Price { input, output, cached }
}

/// Source of the price of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriceSource {
    /// The built-in list, of [`PRICES_DATE`].
    BuiltIn,
    /// The settings, at least in part.
    Settings,
}

impl PriceSettings {
    /// Returns the prices of all models that have one: the built-in ones, and over them those of the settings.
    #[must_use]
    pub fn all(settings: &Settings) -> Prices {
        let mut prices = built_in();
        for (model, price) in Self::own(settings) {
            prices.insert(model, price);
        }
        prices
    }

    /// Returns the prices of all models, in the order of their names, each with its source.
    #[must_use]
    pub fn list(settings: &Settings) -> Vec<(String, Price, PriceSource)> {
        let own = Self::own(settings);
        let source = |model: &str| match own.contains_key(model) {
            true => PriceSource::Settings,
            false => PriceSource::BuiltIn,
        };
        Self::all(settings).iter().map(|(model, price)| (model.to_owned(), *price, source(model))).collect()
    }

    /// Returns the prices of the models that the settings name.
    fn own(settings: &Settings) -> BTreeMap<String, Price> {
        let built_in = built_in();
        let of = |model: String| {
            let price = Self::read(settings, &model).over(built_in.get(&model))?;
            Some((model, price))
        };
        names(settings, Self::KEYS).into_iter().filter_map(of).collect()
    }

    /// Returns the models whose settings have a part of a price, and which have none: `in` or `out` is missing.
    #[must_use]
    pub fn incomplete(settings: &Settings) -> Vec<String> {
        let built_in = built_in();
        let lacks = |model: &String| Self::read(settings, model).over(built_in.get(model)).is_none();
        names(settings, Self::KEYS).into_iter().filter(lacks).collect()
    }

    /// Returns the price over another one of the same model, or `None` if a part that it must have is in neither.
    fn over(&self, known: Option<&Price>) -> Option<Price> {
        Some(Price {
            input: self.input.or(known.map(|price| price.input))?,
            output: self.output.or(known.map(|price| price.output))?,
            // A price of input that the settings change changes that of cached input too.
            cached: self.cached.or(known.filter(|_| self.input.is_none()).and_then(|price| price.cached)),
        })
    }
}

fn built_in() -> Prices {
    Prices::over(BUILT_IN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_go_over_built_in_prices_part_by_part() {
        let known = Price { input: 2.0, output: 10.0, cached: Some(0.1) };
        let own = |input, output, cached| PriceSettings { input, output, cached };
        assert_eq!(own(None, None, None).over(None), None);
        assert_eq!(own(Some(1.0), None, None).over(None), None);
        assert_eq!(own(None, Some(8.0), None).over(Some(&known)), Some(Price { output: 8.0, ..known }));
        assert_eq!(
            own(Some(1.0), None, None).over(Some(&known)),
            Some(Price { input: 1.0, cached: None, ..known })
        );
    }

    #[test]
    fn built_in_prices_are_plausible_and_in_order() {
        for window in BUILT_IN.windows(2) {
            assert!(window[0].0 < window[1].0, "{} and {}", window[0].0, window[1].0);
        }
        for &(model, Price { input, output, cached }) in BUILT_IN {
            assert!(input > 0.0 && output > input && cached.is_none_or(|cached| cached < input), "{model}");
        }
        assert_eq!(built_in().get("claude-sonnet-5-5").map(|price| price.output), Some(10.0));
    }
}
