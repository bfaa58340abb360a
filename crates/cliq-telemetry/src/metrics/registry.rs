//! Registry: the present values of all series.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::{Label, Measurement, Metric, MetricKind};

/// Distribution of the values of a series.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Distribution {
    /// Number of values in each bucket; the last one has no upper bound.
    pub buckets: Vec<u64>,
    /// Sum of all values.
    pub sum: f64,
    /// Number of values.
    pub count: u64,
}

/// Value of a series.
#[derive(Debug, Clone, PartialEq)]
pub enum Series {
    /// Sum or present value.
    Number(f64),
    /// Distribution.
    Distribution(Distribution),
}

/// Present values of a metric, by labels.
pub type Snapshot = Vec<(&'static Metric, Vec<(Vec<Label>, Series)>)>;

/// Present values of metrics. Shared by threads.
#[derive(Debug, Default)]
pub struct Registry {
    series: Mutex<BTreeMap<(usize, Vec<Label>), Series>>,
}

/// Limit on the series of a registry: labels that callers choose, such as names of models, must not fill the memory.
const MAX_SERIES: usize = 10_000;

impl Registry {
    /// Counts or records a value. Values that are not finite, and new series above the limit of 10,000, are left out.
    pub fn record(&self, measurement: &Measurement) {
        self.change(measurement.metric, &measurement.labels, |series| match series {
            Series::Number(number) => *number += measurement.value,
            Series::Distribution(distribution) => distribution.add(measurement),
        });
    }

    /// Sets the value of a counter or gauge, which its owner counts itself.
    pub fn set(&self, metric: &'static Metric, labels: &[Label], value: f64) {
        self.change(metric, labels, |series| {
            if let Series::Number(number) = series {
                *number = value;
            }
        });
    }

    fn change(&self, metric: &'static Metric, labels: &[Label], change: impl FnOnce(&mut Series)) {
        let Some(at) = super::METRICS.iter().position(|known| std::ptr::eq(*known, metric)) else { return };
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (at, labels.to_vec());
        if series.len() >= MAX_SERIES && !series.contains_key(&key) {
            return;
        }
        change(series.entry(key).or_insert_with(|| match metric.kind {
            MetricKind::Counter | MetricKind::Gauge => Series::Number(0.0),
            MetricKind::Histogram(bounds) => Series::Distribution(Distribution {
                buckets: vec![0; bounds.len() + 1],
                ..Distribution::default()
            }),
        }));
    }

    /// Returns the present values, in the order of the definitions.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        let mut snapshot: Snapshot = Vec::new();
        for ((at, labels), value) in series.iter() {
            let Some(metric) = super::METRICS.get(*at) else { continue };
            match snapshot.last_mut() {
                Some((last, rows)) if std::ptr::eq(*last, *metric) => {
                    rows.push((labels.clone(), value.clone()))
                }
                _ => snapshot.push((metric, vec![(labels.clone(), value.clone())])),
            }
        }
        snapshot
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.series.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

impl Distribution {
    fn add(&mut self, measurement: &Measurement) {
        let MetricKind::Histogram(bounds) = measurement.metric.kind else { return };
        if !measurement.value.is_finite() {
            return;
        }
        let at = bounds.partition_point(|bound| *bound < measurement.value);
        if let Some(bucket) = self.buckets.get_mut(at) {
            *bucket += 1;
        }
        self.sum += measurement.value;
        self.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{COST, METRICS, TOKEN_USAGE};
    use super::*;

    fn label(value: &str) -> Label {
        ("gen_ai.token.type", value.to_owned())
    }

    #[test]
    fn values_are_added_by_labels() {
        let registry = Registry::default();
        assert!(registry.is_empty());
        for (value, of) in
            [(4.0, "input"), (5.0, "input"), (1e12, "input"), (1.0, "output"), (f64::NAN, "output")]
        {
            registry.record(&Measurement::new(&TOKEN_USAGE, value, [label(of)]));
        }
        registry.record(&Measurement::new(&COST, 0.5, []));
        registry.record(&Measurement::new(&COST, 0.25, []));
        let snapshot = registry.snapshot();
        let names: Vec<_> = snapshot.iter().map(|(metric, rows)| (metric.name, rows.len())).collect();
        assert_eq!(names, [("gen_ai.client.token.usage", 2), ("cliq.cost", 1)]);
        assert_eq!(snapshot[1].1[0].1, Series::Number(0.75));
        let Series::Distribution(input) = &snapshot[0].1[0].1 else { panic!("a distribution") };
        assert_eq!((input.count, input.buckets[1], input.buckets[2]), (3, 1, 1));
        assert_eq!(input.buckets.last(), Some(&1));
    }

    #[test]
    fn definitions_have_different_names() {
        let mut names: Vec<_> = METRICS.iter().map(|metric| metric.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), METRICS.len());
    }

    #[test]
    fn labels_cannot_fill_the_memory() {
        let registry = Registry::default();
        for n in 0..MAX_SERIES + 10 {
            registry.record(&Measurement::new(&COST, 1.0, [label(&n.to_string())]));
        }
        assert_eq!(registry.snapshot()[0].1.len(), MAX_SERIES);
    }
}
