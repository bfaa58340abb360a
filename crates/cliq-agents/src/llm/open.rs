//! Opening a model: from an entry of the catalog to something that can be asked.

use camino::Utf8PathBuf;
use cliq_sdk::PhaseContext;
use cliq_settings::{AgentSettings, Environment, Settings};

use super::Launch;
#[cfg(feature = "http")]
use super::api::{Access, PlaceLimits, Places};
use super::catalog::{ModelAgent, Usable};
use super::cli::Cli;
use super::kinds::Transport;
use crate::AnyError;

/// Model behind an agent.
pub(super) enum Opened {
    Program(Box<Cli>),
    Acp(Box<Launch>),
    #[cfg(feature = "http")]
    Api(Box<Access>),
}

/// Opens the model behind an agent.
///
/// # Errors
/// Returns what is missing if the agent cannot be used here.
pub(super) fn open(
    agent: &ModelAgent,
    settings: &Settings,
    environment: &Environment,
    ctx: &PhaseContext,
) -> Result<Opened, AnyError> {
    if let Usable::No(why) = agent.usable(settings, environment) {
        return Err(why.into());
    }
    let model = agent.model(settings, ctx.phase().model.as_deref());
    let (key, base) = (agent.key(settings, environment), agent.base(settings, environment));
    let own = AgentSettings::read(settings, &agent.name);
    match agent.transport() {
        Transport::Cli(dialect) => Ok(Opened::Program(Box::new(Cli {
            dialect,
            name: agent.name.clone(),
            program: agent.program(settings, environment).unwrap_or_else(|| agent.name.clone().into()),
            args: own.args,
            env: own.env,
            model,
            // What the environment has, the program has too.
            key: own.api_key.and_then(|key| Some((*agent.key_variables().first()?, key))),
            known_key: key,
            base,
            base_variable: agent.base_variable(),
            workspace: ctx.workspace().to_owned(),
            prompt_file: ctx.files_dir().join(".prompt.md"),
            path: environment.get("PATH").map(str::to_owned),
            wrapper: crate::wrapper(environment)?.map(|wrapper| {
                let own = AgentSettings::read(settings, &agent.name).env.into_keys();
                let variables = agent.variables().into_iter().map(str::to_owned).chain(own);
                wrapper.with(state_paths(agent, environment), variables)
            }),
        }))),
        Transport::Acp => Ok(Opened::Acp(Box::new(Launch::of_phase(agent, settings, environment, ctx)?))),
        #[cfg(feature = "http")]
        Transport::Api(kind) => {
            let model = model.unwrap_or_default();
            Ok(Opened::Api(Box::new(of_phase(
                agent,
                agent.access(settings, kind, key, base, model),
                settings,
                environment,
                ctx,
            ))))
        }
        #[cfg(not(feature = "http"))]
        Transport::Api(_) => Err("this cliq was built without HTTP".into()),
    }
}

/// Completes the access to a model for a phase: parameters, the name of its conversation, places.
#[cfg(feature = "http")]
fn of_phase(
    agent: &ModelAgent,
    mut access: Access,
    settings: &Settings,
    environment: &Environment,
    ctx: &PhaseContext,
) -> Access {
    let own = AgentSettings::read(settings, &agent.name);
    access.parameters = ctx.phase().parameters.over(&access.parameters);
    access.cache_key = Some(format!("{}-{}", ctx.run_id(), ctx.phase().name));
    let limits = PlaceLimits { max_concurrent: own.max_concurrent, per_minute: own.requests_per_minute };
    access.places =
        environment.cliq_home().map(|home| Places::new(&home, &agent.name, ctx.run_id().as_str(), limits));
    access
}

/// Returns the models that go on in place of an agent's, in their order.
///
/// # Errors
/// Returns an error if the settings name an agent that is no model behind an API, or that cannot work.
#[cfg(feature = "http")]
pub(super) fn fallbacks(
    agent: &ModelAgent,
    settings: &Settings,
    environment: &Environment,
    ctx: &PhaseContext,
) -> Result<Vec<Access>, AnyError> {
    let names = AgentSettings::read(settings, &agent.name).fallback;
    let open = |name: String| -> Result<Access, AnyError> {
        let wrong = |why: &str| format!("`{}` names `{name}`, {why}", agent.setting("fallback"));
        let other =
            ModelAgent::find(&name, settings).ok_or_else(|| wrong("and there is no such model agent"))?;
        let Transport::Api(kind) = other.transport() else {
            return Err(wrong("which is not a model behind an API").into());
        };
        if let Usable::No(why) = other.usable(settings, environment) {
            return Err(wrong(&format!("which cannot work: {why}")).into());
        }
        let (key, base) = (other.key(settings, environment), other.base(settings, environment));
        let model = other.model(settings, None).unwrap_or_default();
        let access = other.access(settings, kind, key, base, model);
        Ok(of_phase(&other, access, settings, environment, ctx))
    };
    names.into_iter().map(open).collect()
}

/// Returns the paths where a vendor's program keeps its state. Makes its directories: a sandbox shows what exists.
pub(super) fn state_paths(agent: &ModelAgent, environment: &Environment) -> Vec<Utf8PathBuf> {
    let own = agent.state_variable().and_then(|name| environment.get(name)).map(Utf8PathBuf::from);
    let home = environment.get("HOME").map(Utf8PathBuf::from);
    let below_home = agent.state().iter().filter_map(|path| {
        let full = home.as_ref()?.join(path.trim_end_matches('/'));
        if path.ends_with('/') && own.is_none() {
            let _ = std::fs::create_dir_all(&full);
        }
        Some(full)
    });
    own.iter().cloned().chain(below_home).collect()
}
