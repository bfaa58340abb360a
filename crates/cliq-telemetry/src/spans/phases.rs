//! Spans of phases and their gates.

use cliq_protocol::{Outcome, PhaseKind, PhaseName, SpanId, Timestamp, Verdict};

use super::TraceBuilder;
use crate::conventions::{key, own};
use crate::metrics::{GATE_ROUNDS, GATE_VERDICTS, Measurement};
use crate::span::{Attribute, Span, SpanKind};

/// Phase at work.
#[derive(Debug)]
pub(super) struct OpenPhase {
    pub(super) id: SpanId,
    start: Timestamp,
    kind: PhaseKind,
    iteration: u32,
    links: Vec<SpanId>,
    verdict: Option<Verdict>,
    measurements: Vec<Measurement>,
}

impl TraceBuilder {
    pub(super) fn phase_started(
        &mut self,
        phase: &PhaseName,
        kind: PhaseKind,
        iteration: u32,
        routed_by: Option<&PhaseName>,
    ) {
        // Work that was sent back, or that starts anew after an interruption, has a span of its own.
        self.phase_ended(phase, None, None);
        let list = phase.item().and_then(|_| PhaseName::parse(phase.whole()).ok());
        let list = list.and_then(|list| self.phases.get(&list)).map(|list| list.id);
        let gate = routed_by.and_then(|gate| self.gates.get(gate)).copied();
        let links = list.into_iter().chain(gate).collect();
        let id = self.ids.phase_span(phase);
        let open = OpenPhase {
            id,
            start: self.now,
            kind,
            iteration,
            links,
            verdict: None,
            measurements: Vec::new(),
        };
        self.phases.insert(phase.clone(), open);
    }

    /// Span that the parts of a phase belong to.
    pub(super) fn parent_of(&self, phase: &PhaseName) -> SpanId {
        self.phases.get(phase).map_or_else(|| self.ids.run_span(), |open| open.id)
    }

    pub(super) fn verdict(&mut self, gate: &PhaseName, iteration: u32, verdict: &Verdict) {
        let word = word_of(&verdict.outcome);
        let Some(open) = self.phases.get_mut(gate) else { return };
        open.measurements.push(Measurement::new(
            &GATE_VERDICTS,
            1.0,
            [(own::PHASE, gate.whole().to_owned()), (own::VERDICT, word.to_owned())],
        ));
        if !matches!(verdict.outcome, Outcome::Route(_)) {
            let labels = [(own::PHASE, gate.whole().to_owned()), (own::VERDICT, word.to_owned())];
            open.measurements.push(Measurement::new(&GATE_ROUNDS, iteration.into(), labels));
        }
        open.verdict = Some(verdict.clone());
        if matches!(verdict.outcome, Outcome::Route(_)) {
            self.gates.insert(gate.clone(), open.id);
            self.phase_ended(gate, None, None);
        }
    }

    /// Ends the span of a phase, with the class of its failure.
    pub(super) fn phase_ended(&mut self, phase: &PhaseName, error: Option<&str>, reason: Option<&str>) {
        let Some(open) = self.phases.remove(phase) else { return };
        let content = self.options.content;
        let mut attributes: Vec<Attribute> = vec![
            (own::PHASE, phase.as_str().into()),
            (own::PHASE_KIND, open.kind.as_str().into()),
            (own::ITERATION, open.iteration.into()),
            (crate::conventions::OPENINFERENCE_KIND, "CHAIN".into()),
        ];
        attributes.extend(phase.item().map(|item| (own::ITEM, item.into())));
        let mut reason = reason.map(str::to_owned);
        if let Some(verdict) = &open.verdict {
            attributes.push((own::VERDICT, word_of(&verdict.outcome).into()));
            if let Outcome::Route(target) = &verdict.outcome {
                attributes.push((own::TARGET, target.as_str().into()));
            }
            reason = reason.or_else(|| verdict.reason.clone());
        }
        if let Some(reason) = reason.as_deref().filter(|_| content) {
            attributes.push((own::REASON, self.options.mask.apply(reason).into()));
        }
        attributes.extend(error.map(|error| (key::ERROR, error.into())));
        let error = error.map(|error| self.failure(reason.as_deref(), &format!("the phase was {error}")));
        let span = Span {
            trace: self.ids.id(),
            id: open.id,
            parent: Some(self.ids.run_span()),
            name: format!("{} {}", if open.kind.is_gate() { "gate" } else { "phase" }, phase.whole()),
            kind: SpanKind::Internal,
            start: open.start,
            end: self.now,
            attributes,
            links: open.links,
            error,
            measurements: open.measurements,
        };
        self.end_reviews(|review| review.phase == *phase);
        self.push(span);
    }

    /// Ends the spans of all phases.
    pub(super) fn end_phases(&mut self, error: &str) {
        let mut open: Vec<PhaseName> = self.phases.keys().cloned().collect();
        open.sort();
        for phase in open {
            self.phase_ended(&phase, Some(error), None);
        }
    }
}

fn word_of(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "pass",
        Outcome::Route(_) => "route",
        Outcome::Escalate => "escalate",
    }
}
