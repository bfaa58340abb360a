//! Start of an activation: tools, limits, transcript.

use camino::Utf8PathBuf;
use cliq_coder::tools::{self, RESULT_LIMIT};
use cliq_coder::{HostCommand, Limits, ToolHost};
use cliq_protocol::{AgentTools, Budget};
use cliq_sandbox::Wrapper;
use cliq_sdk::{PhaseContext, SteeringMessage};
use cliq_settings::{EnforcementSettings, Environment, MissingSandbox, PriceSettings, Settings};

use super::ModelLoop;
use super::servers::McpTools;
use crate::llm::api::{Access, Api};
use crate::llm::catalog::ModelAgent;
use crate::llm::display::Display;
use crate::llm::images::KeptImages;
use crate::llm::instructions::Instructions;
use crate::llm::meter::Meter;
use crate::llm::people::People;
use crate::llm::prompt::{self, Scope};
use crate::llm::skills::Skills;
use crate::llm::structure::Structure;
use crate::{AnyError, SERVE_TOOLS};

/// Renders a prompt with steering messages and parts of the task.
pub(crate) type Render<'a> = &'a dyn Fn(&[SteeringMessage], Scope<'_>) -> Result<prompt::Prompt, AnyError>;

/// Prompt of an activation.
pub(crate) struct Prompt<'a> {
    /// Returns the prompt with these steering messages of the dispatch message, and these parts of the task.
    pub(crate) render: Render<'a>,
    /// Question about an answer that an earlier process of this activation gave.
    pub(crate) again: Option<String>,
}

/// Tools that an agent has in a phase: of the phase, of the settings, or by the type of the phase.
pub(crate) fn tools_of(agent: &ModelAgent, settings: &Settings, ctx: &PhaseContext) -> AgentTools {
    let phase = ctx.phase();
    crate::agent_tools(&agent.name, settings, phase.agent_tools.as_ref(), phase.kind)
}

/// Model, and its tools in a phase.
pub(crate) struct Opened<'o> {
    pub(crate) agent: &'o ModelAgent,
    pub(crate) access: Access,
    pub(crate) selection: AgentTools,
    pub(crate) structure: Option<Structure>,
    pub(crate) skills: Skills,
    pub(crate) instructions: Option<Instructions>,
    /// Models that go on after a permanent error or an outage.
    pub(crate) fallbacks: Vec<Access>,
}

impl<'a> ModelLoop<'a> {
    /// Opens the model for an activation, or continues an interrupted one.
    pub(crate) fn open(
        opened: Opened<'_>,
        settings: &Settings,
        environment: &Environment,
        ctx: &'a PhaseContext,
        prompt: &Prompt<'_>,
    ) -> Result<Self, AnyError> {
        let Opened { agent, access, selection, structure, skills, instructions, fallbacks } = opened;
        let mut specs = tools::specs(&selection);
        let own = agent.settings(settings);
        let sees_images = own.images.unwrap_or_else(|| agent.is_at_its_vendor(&access));
        let secrets = access.key.iter().map(|key| key.reveal().to_owned()).collect();
        let people = People::open(ctx, settings, environment, secrets)?;
        let wrapper = crate::wrapper(environment)?;
        let has_network = cfg!(feature = "connectors") && wrapper.as_ref().is_some_and(Wrapper::has_network);
        specs.retain(|tool| match tool.name.as_str() {
            tools::APPLY_PATCH => knows_patches(&access.model),
            tools::READ_IMAGE => sees_images,
            tools::FETCH_PAGE => has_network,
            tools::ASK_PERSON => people.can_be_asked(),
            _ => true,
        });
        let has_built_in = !specs.is_empty();
        let answer_tool = structure.as_ref().filter(|_| has_built_in).map(Structure::tool);
        let answer_name = answer_tool.as_ref().map(|tool| match tool.name.as_str() {
            tools::HAND_OVER => tools::HAND_OVER,
            _ => tools::GIVE_VERDICT,
        });
        specs.extend(skills.tool());
        specs.extend(answer_tool);
        let mut servers = McpTools::connect(&selection, settings, environment, ctx)?;
        specs.extend(servers.specs()?);
        let context = agent.context_tokens(settings, &access);
        let descriptions: usize = specs
            .iter()
            .map(|tool| tool.name.len() + tool.description.len() + tool.schema.to_string().len())
            .sum();
        let limits = Limits {
            max_turns: own
                .max_turns
                .and_then(|turns| u32::try_from(turns).ok())
                .unwrap_or(Limits::default().max_turns),
            context_tokens: context,
            knows_context: own.context_tokens.is_some() || access.is_at_vendor,
            reply_tokens: access.parameters.max_tokens.unwrap_or(16_000).min(context / 4),
            fixed_bytes: descriptions,
            budget: ctx.dispatch().budget,
            price: PriceSettings::all(settings).get(&access.model).copied(),
            has_tools: !specs.is_empty(),
            answer_tool: answer_name,
        };
        let host =
            if !has_built_in { None } else { Some(host(&selection, wrapper, settings, environment, ctx)?) };
        let display = Display::new(ctx.reporter());
        let meter = Meter::new(ctx.reporter());
        let mut this = Self {
            api: Api::new(access),
            agent: agent.name.clone(),
            is_gate: ctx.phase().kind.is_gate(),
            state: cliq_coder::Loop::new(limits.clone()),
            transcript: None,
            tools: specs,
            structure,
            skills,
            instructions,
            files_dir: ctx.files_dir().to_owned(),
            asks_again: false,
            refused_answers: 0,
            refusal: None,
            fallbacks: fallbacks.into(),
            host,
            people,
            servers,
            // Three bytes make a token, roughly: a result has at most a tenth of the context.
            result_limit: usize::try_from(context * 3 / 10)
                .unwrap_or(RESULT_LIMIT)
                .clamp(2_000, RESULT_LIMIT),
            images: Vec::new(),
            kept_images: KeptImages::new(ctx.workspace(), ctx.files_dir(), &ctx.phase().name),
            workspace: ctx.workspace().to_owned(),
            display,
            meter,
            // The prompt contains those of the dispatch message.
            steering: ctx.steering().live_only(),
        };
        if let Some(host) = &mut this.host {
            host.start();
        }
        this.begin(limits, ctx, prompt, sees_images)?;
        this.people.withdraw_but(&this.open_questions())?;
        this.images = this.kept_images.load_all(&this.named_images());
        Ok(this)
    }
}

/// Command of the process that tools run in.
fn host(
    selection: &AgentTools,
    wrapper: Option<Wrapper>,
    settings: &Settings,
    environment: &Environment,
    ctx: &PhaseContext,
) -> Result<ToolHost, AnyError> {
    let workspace = ctx.workspace().to_owned();
    let serve = |program: Utf8PathBuf| {
        [program.into_string(), SERVE_TOOLS.to_owned(), workspace.to_string(), ctx.files_dir().to_string()]
    };
    let command = match wrapper {
        Some(wrapper) => {
            let wrapper = wrapper.showing_its_program();
            let program = wrapper.program().to_owned();
            let (starter, mut arguments) = wrapper.command(&workspace, environment.get("PATH"))?;
            arguments.extend(serve(program));
            HostCommand { program: starter, arguments, dir: workspace.clone(), without: Vec::new() }
        }
        None => {
            let is_permitted = EnforcementSettings::read(settings).missing == MissingSandbox::Warn;
            if selection.allows_changes() && !is_permitted {
                return Err("tools that write files or run commands need a sandbox, and this agent was started without one: \
                            `cliq doctor` shows what is missing; `agent_tools: read` needs none"
                    .into());
            }
            let own = std::env::current_exe()?;
            let own = Utf8PathBuf::try_from(own)?;
            let [program, arguments @ ..] = serve(own);
            HostCommand {
                program,
                arguments: arguments.into(),
                dir: workspace.clone(),
                without: crate::variables().into_iter().map(str::to_owned).collect(),
            }
        }
    };
    Ok(ToolHost::new(command))
}

/// Adds what an interrupted activation has used to the remaining budget: the loop counts it again.
pub(super) fn with_spent(budget: Budget, spent: &cliq_sdk::Usage, cost: Option<f64>) -> Budget {
    Budget {
        tokens: budget.tokens.map(|tokens| tokens.saturating_add(spent.tokens())),
        usd: budget.usd.map(|usd| usd + cost.unwrap_or(0.0)),
    }
}

/// Whether a model is trained on the form of `apply_patch`: those of OpenAI are.
fn knows_patches(model: &str) -> bool {
    let model = model.to_lowercase();
    let name = model.rsplit('/').next().unwrap_or(&model);
    name.starts_with("gpt-") || name.contains("codex")
}
