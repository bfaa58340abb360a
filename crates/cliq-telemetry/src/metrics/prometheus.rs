//! Text format of Prometheus.

use std::fmt::Write;

use super::{Label, Metric, MetricKind, Registry, Series};

impl Registry {
    /// Returns all values in the text format of Prometheus, version 0.0.4.
    #[must_use]
    pub fn to_prometheus(&self) -> String {
        let mut out = String::new();
        for (metric, rows) in self.snapshot() {
            let name = name_of(metric);
            let kind = match metric.kind {
                MetricKind::Counter => "counter",
                MetricKind::Gauge => "gauge",
                MetricKind::Histogram(_) => "histogram",
            };
            let _ = writeln!(out, "# HELP {name} {}\n# TYPE {name} {kind}", metric.about);
            for (labels, series) in rows {
                row(&mut out, metric, &name, &labels, &series);
            }
        }
        out
    }
}

fn row(out: &mut String, metric: &Metric, name: &str, labels: &[Label], series: &Series) {
    match (series, metric.kind) {
        (Series::Number(number), _) => drop(writeln!(out, "{name}{} {number}", of(labels, None))),
        (Series::Distribution(values), MetricKind::Histogram(bounds)) => {
            let mut below = 0;
            let bounds = bounds.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
            for (count, bound) in values.buckets.iter().zip(bounds) {
                below += count;
                let _ = writeln!(out, "{name}_bucket{} {below}", of(labels, Some(&bound)));
            }
            let _ = writeln!(out, "{name}_sum{} {}", of(labels, None), values.sum);
            let _ = writeln!(out, "{name}_count{} {}", of(labels, None), values.count);
        }
        (Series::Distribution(_), MetricKind::Counter | MetricKind::Gauge) => {}
    }
}

/// Name of a metric: with its unit, as the OpenTelemetry specification says.
fn name_of(metric: &Metric) -> String {
    let mut name = metric.name.replace('.', "_");
    if metric.unit == "s" && !name.ends_with("_seconds") {
        name.push_str("_seconds");
    }
    if metric.unit == "USD" {
        name.push_str("_usd");
    }
    if metric.kind == MetricKind::Counter {
        name.push_str("_total");
    }
    name
}

fn of(labels: &[Label], bound: Option<&str>) -> String {
    let labels = labels.iter().map(|(name, value)| {
        // Labels of cliq alone are named without its prefix.
        let name = name.strip_prefix("cliq.").unwrap_or(name).replace('.', "_");
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("{name}=\"{value}\"")
    });
    let all: Vec<String> = labels.chain(bound.map(|bound| format!("le=\"{bound}\""))).collect();
    if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) }
}

#[cfg(test)]
mod tests {
    use super::super::{COST, Measurement, OPERATION_DURATION, RUNS, RUNS_FINISHED, UP_SECONDS};
    use super::*;

    #[test]
    fn text_is_that_of_prometheus() {
        let registry = Registry::default();
        registry.set(&RUNS, &[("cliq.state", "running".to_owned())], 2.0);
        registry.set(&UP_SECONDS, &[], 7.0);
        registry.record(&Measurement::new(
            &RUNS_FINISHED,
            1.0,
            [("cliq.run.outcome", "completed".to_owned())],
        ));
        registry.record(&Measurement::new(&COST, 0.5, []));
        let labels = [("gen_ai.request.model", "a\"b\\c\n".to_owned())];
        registry.record(&Measurement::new(&OPERATION_DURATION, 0.03, labels));
        insta::assert_snapshot!(registry.to_prometheus(), @r##"
        # HELP gen_ai_client_operation_duration_seconds GenAI operation duration.
        # TYPE gen_ai_client_operation_duration_seconds histogram
        gen_ai_client_operation_duration_seconds_bucket{gen_ai_request_model="a\"b\\c\n",le="0.01"} 0
        gen_ai_client_operation_duration_seconds_bucket{gen_ai_request_model="a\"b\\c\n",le="0.02"} 0
        gen_ai_client_operation_duration_seconds_bucket{gen_ai_request_model="a\"b\\c\n",le="0.04"} 1
        gen_ai_client_operation_duration_seconds_bucket{gen_ai_request_model="a\"b\\c\n",le="0.08"} 1
        gen_ai_client_operation_duration_seconds_bucket{gen_ai_request_model="a\"b\\c\n",le="0.16"} 1
        gen_ai_client_operation_duration_seconds_bucket{gen_ai_request_model="a\"b\\c\n",le="0.32"} 1
        gen_ai_client_operation_duration_seconds_bucket{gen_ai_request_model="a\"b\\c\n",le="0.64"} 1
        gen_ai_client_operation_duration_seconds_bucket{gen_ai_request_model="a\"b\\c\n",le="1.28"} 1
        gen_ai_client_operation_duration_seconds_bucket{gen_ai_request_model="a\"b\\c\n",le="2.56"} 1
        gen_ai_client_operation_duration_seconds_bucket{gen_ai_request_model="a\"b\\c\n",le="5.12"} 1
        gen_ai_client_operation_duration_seconds_bucket{gen_ai_request_model="a\"b\\c\n",le="10.24"} 1
        gen_ai_client_operation_duration_seconds_bucket{gen_ai_request_model="a\"b\\c\n",le="20.48"} 1
        gen_ai_client_operation_duration_seconds_bucket{gen_ai_request_model="a\"b\\c\n",le="40.96"} 1
        gen_ai_client_operation_duration_seconds_bucket{gen_ai_request_model="a\"b\\c\n",le="81.92"} 1
        gen_ai_client_operation_duration_seconds_bucket{gen_ai_request_model="a\"b\\c\n",le="+Inf"} 1
        gen_ai_client_operation_duration_seconds_sum{gen_ai_request_model="a\"b\\c\n"} 0.03
        gen_ai_client_operation_duration_seconds_count{gen_ai_request_model="a\"b\\c\n"} 1
        # HELP cliq_runs_finished_total Runs that ended, by outcome.
        # TYPE cliq_runs_finished_total counter
        cliq_runs_finished_total{run_outcome="completed"} 1
        # HELP cliq_cost_usd_total Cost of replies in US dollars, as far as it is known.
        # TYPE cliq_cost_usd_total counter
        cliq_cost_usd_total 0.5
        # HELP cliq_runs Runs in the store, by state.
        # TYPE cliq_runs gauge
        cliq_runs{state="running"} 2
        # HELP cliq_up_seconds Seconds since the server started.
        # TYPE cliq_up_seconds gauge
        cliq_up_seconds 7
        "##);
    }
}
