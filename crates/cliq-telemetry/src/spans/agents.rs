//! Spans of the activations of agents.

use cliq_protocol::{Limited, PhaseName, SpanId, Timestamp, Usage};
use cliq_workflow::FailureCause;

use super::{TraceBuilder, totals};
use crate::conventions::{self, key, operation, own};
use crate::metrics::{Label, Measurement, OPERATION_DURATION};
use crate::span::{Attribute, Span, SpanKind};

/// Activation of an agent.
#[derive(Debug)]
pub(super) struct Activation {
    pub(super) id: SpanId,
    parent: SpanId,
    pub(super) start: Timestamp,
    pub(super) end: Option<Timestamp>,
    iteration: u32,
    agent: String,
    usage: Option<Usage>,
    /// Provider and model of its replies.
    pub(super) model: Model,
}

/// Provider and model, as far as they are known.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    pub(super) provider: Option<String>,
    pub(super) requested: Option<String>,
    /// Whether its replies have spans, which have the tokens.
    pub(super) has_replies: bool,
}

impl TraceBuilder {
    pub(super) fn agent_started(&mut self, phase: &PhaseName, iteration: u32, agent: &str) {
        // An answer that was no verdict is given back: the agent starts once more.
        self.agent_ended(phase, Some("verdict_rejected"), None);
        let activation = Activation {
            id: self.ids.agent_span(phase),
            parent: self.parent_of(phase),
            start: self.now,
            end: None,
            iteration,
            agent: agent.to_owned(),
            usage: None,
            model: Model::default(),
        };
        self.agents.entry(phase.clone()).or_default().push(activation);
    }

    pub(super) fn usage_reported(&mut self, phase: &PhaseName, usage: &Usage) {
        let activation = self.agents.get_mut(phase).and_then(|all| all.last_mut());
        if let Some(activation) = activation {
            activation.usage = Some(usage.clone());
        }
    }

    /// Activation that was at work at a time.
    pub(super) fn activation_at(&mut self, phase: &PhaseName, time: Timestamp) -> Option<&mut Activation> {
        let all = self.agents.get_mut(phase)?;
        let after = all.partition_point(|activation| activation.start <= time);
        all.get_mut(after.saturating_sub(1))
    }

    pub(super) fn work_failed(
        &mut self,
        phase: &PhaseName,
        reason: &str,
        cause: Option<FailureCause>,
        limited: Option<&Limited>,
    ) {
        let error = match (limited, cause) {
            (Some(_), _) => "limit",
            (None, Some(cause)) => cause.as_str(),
            (None, None) => "failed",
        };
        self.agent_ended(phase, Some(error), Some((reason, limited)));
    }

    /// Ends the span of an activation at work, with the class of its failure.
    pub(super) fn agent_ended(
        &mut self,
        phase: &PhaseName,
        error: Option<&str>,
        failure: Option<(&str, Option<&Limited>)>,
    ) {
        let is_open =
            self.agents.get(phase).and_then(|all| all.last()).is_some_and(|last| last.end.is_none());
        if !is_open {
            return;
        }
        self.end_calls(phase);
        let now = self.now;
        let Some(activation) = self.agents.get_mut(phase).and_then(|all| all.last_mut()) else { return };
        activation.end = Some(now);
        let (model, usage) = (activation.model.clone(), activation.usage.clone());
        let (id, parent, start) = (activation.id, activation.parent, activation.start);
        let (iteration, agent) = (activation.iteration, activation.agent.clone());
        let of_usage =
            |usage: &Option<Usage>, get: fn(&Usage) -> Option<&String>| usage.as_ref().and_then(get).cloned();
        let provider = model.provider.or_else(|| of_usage(&usage, |usage| usage.provider.as_ref()));
        let provider = provider.as_deref().map_or(conventions::SCOPE, conventions::provider).to_owned();
        let requested = model.requested.or_else(|| of_usage(&usage, |usage| usage.model.as_ref()));
        let mut attributes: Vec<Attribute> = vec![
            (key::OPERATION, operation::INVOKE_AGENT.into()),
            (key::PROVIDER, provider.as_str().into()),
            (key::AGENT, phase.whole().into()),
            (own::AGENT, agent.into()),
            (own::PHASE, phase.as_str().into()),
            (own::ITERATION, iteration.into()),
        ];
        attributes.extend(requested.clone().map(|model| (key::REQUEST_MODEL, model.into())));
        if let Some(usage) = &usage {
            let usage = Usage { cost_usd: self.cost(usage), ..usage.clone() };
            attributes.extend(totals(&usage));
            if !model.has_replies {
                attributes.push((key::INPUT_TOKENS, usage.tokens_in.into()));
                attributes.push((key::OUTPUT_TOKENS, usage.tokens_out.into()));
                attributes.extend(usage.tokens_cached.map(|cached| (key::CACHED_TOKENS, cached.into())));
            }
            self.usage.add(&usage);
        }
        let (reason, limited) = failure.unzip();
        attributes.extend(limited.flatten().map(|limited| (own::LIMIT, limited.limit.as_str().into())));
        if let Some(reason) = reason.filter(|_| self.options.content) {
            attributes.push((own::REASON, self.options.mask.apply(reason).into()));
        }
        let mut labels: Vec<Label> =
            vec![(key::OPERATION, operation::INVOKE_AGENT.to_owned()), (key::PROVIDER, provider)];
        labels.extend(requested.map(|model| (key::REQUEST_MODEL, model)));
        if let Some(error) = error {
            attributes.push((key::ERROR, error.into()));
            labels.push((key::ERROR, error.to_owned()));
        }
        let span = Span {
            trace: self.ids.id(),
            id,
            parent: Some(parent),
            name: format!("invoke_agent {}", phase.whole()),
            kind: SpanKind::Internal,
            start,
            end: now,
            attributes,
            links: Vec::new(),
            error: error.map(|error| self.failure(reason, &format!("the agent ended: {error}"))),
            measurements: vec![Measurement::new(&OPERATION_DURATION, now.since(start).as_secs_f64(), labels)],
        };
        self.push(span);
    }

    /// Ends the spans of all activations at work.
    pub(super) fn end_agents(&mut self, error: Option<&str>) {
        let mut working = self.working();
        working.sort();
        for phase in working {
            self.agent_ended(&phase, error, None);
        }
    }
}
