//! Prompts without tools, skills and steering messages, as one text, for the records of scripted agents.

use cliq_sdk::{GateContext, PhaseContext, StandardContext, SteeringMessage};

use super::{AnswerForm, Form, Scope};
use crate::AnyError;

impl<'a> Form<'a> {
    /// The form of a prompt for an agent that answers with text alone.
    pub(super) fn plain(steering: &'a [SteeringMessage]) -> Self {
        Self {
            steering,
            rejected: false,
            has_tools: false,
            has_system: false,
            answer: AnswerForm::Text,
            skills: "",
            project: "",
            scope: Scope::Whole,
        }
    }
}

/// Returns the prompt for the agent of a standard phase.
pub(crate) fn standard(ctx: &StandardContext) -> Result<String, AnyError> {
    Ok(super::standard(ctx, &Form::plain(&[]))?.whole())
}

/// Returns the prompt for the agent of a gate.
pub(crate) fn gate(ctx: &GateContext) -> Result<String, AnyError> {
    Ok(super::gate(ctx, &Form::plain(&[]))?.whole())
}

/// Returns role, requirement and handoffs: the task of any phase.
pub(crate) fn task_of(ctx: &PhaseContext) -> Result<String, AnyError> {
    Ok(super::task(ctx, &Form::plain(&[]))?.whole())
}
