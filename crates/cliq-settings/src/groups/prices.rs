//! Settings `prices.*`.

use std::collections::BTreeMap;

use cliq_protocol::Price;

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

impl PriceSettings {
    /// Returns the prices of all models that have one, by model.
    #[must_use]
    pub fn all(settings: &Settings) -> BTreeMap<String, Price> {
        let price = |model: String| Some((Self::read(settings, &model).price()?, model));
        names(settings, Self::KEYS)
            .into_iter()
            .filter_map(price)
            .map(|(price, model)| (model, price))
            .collect()
    }

    /// Returns the price, or `None` if a part that it must have is not set.
    #[must_use]
    pub fn price(&self) -> Option<Price> {
        Some(Price { input: self.input?, output: self.output?, cached: self.cached })
    }
}
