//! `cliq agent sandbox`, and the wrapper that enters a sandbox.

use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode};
use std::sync::Arc;

use cliq_project::internals::egress::{EgressProxy, EgressRules, OnRefusal, forward_to_socket};
use cliq_project::internals::{Access, Confined, Egress, Policy, Preference, Wrapper, enter_sandbox};
use cliq_project::{Network, Profile, Sandbox};
use cliq_settings::EnforcementSettings;
use serde_json::Value;

use crate::failure::Failure;
use crate::{project, ui};

/// Sandbox as the options name it.
pub(super) struct Request {
    pub(super) profile: String,
    pub(super) network: String,
    pub(super) read: Vec<String>,
    pub(super) write: Vec<String>,
    pub(super) env: Vec<String>,
    pub(super) mechanism: Option<String>,
}

/// Becomes the command in a sandbox around this directory.
pub(super) fn run(request: Request, command: &[String]) -> Result<ExitCode, Failure> {
    let (host, here) = (project::host(), project::here()?);
    let hosts = || request.network.split(',').map(Value::from).collect();
    let network = match request.network.as_str() {
        word @ ("all" | "none") => Value::from(word),
        _ => Value::Array(hosts()),
    };
    let network =
        Network::from_value(network, "--network").map_err(|error| Failure::usage(error.to_string()))?;
    let profile = Profile::parse(&request.profile).unwrap_or(Profile::Workspace);
    let sandbox = Sandbox { profile, read: request.read, write: request.write, network, env: request.env };
    let settings = project::settings()?;
    let set = || EnforcementSettings::read(&settings).mechanism.as_str().to_owned();
    let mechanism = request.mechanism.unwrap_or_else(set);
    let preference = Preference::parse(&mechanism).unwrap_or_default();
    let temporary = std::env::temp_dir().join(format!("cliq-sandbox-{}", std::process::id()));
    let access = Access { temporary: temporary.clone().try_into().ok(), ..Access::default() };
    let (policy, _guard) = host.sandbox_policy(&sandbox, &here, &access, preference).map_err(|missing| {
        Failure::failed(format!("this system cannot enforce a sandbox: {missing}"))
            .hint("`cliq doctor` shows what is there; docs/sandbox.md in the repository of cliq says what is needed")
    })?;
    // The proxy and the private directory for temporary files go with the command.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let proxy = match &policy.network {
        Network::Hosts(hosts) => {
            let _entered = runtime.enter();
            let on_refusal: OnRefusal = Arc::new(|refusal| ui::warning(&format!("refused: {refusal}")));
            Some(EgressProxy::start(EgressRules::new(hosts.clone()), on_refusal)?)
        }
        _ => None,
    };
    let policy = match &proxy {
        Some(proxy) => policy.with_egress(Egress { port: proxy.port(), socket: proxy.socket().to_owned() }),
        None => policy,
    };
    std::fs::create_dir_all(&temporary)?;
    let wrapper = Wrapper::new(project::own_program()?, policy);
    let (program, before) = wrapper.command(&here, host.environment.get("PATH")).map_err(Failure::failed)?;
    let status = Command::new(program).args(before).args(command).status();
    let _ = std::fs::remove_dir_all(&temporary);
    let status = status?;
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// Enters the sandbox of a policy and becomes the command: `cliq confine POLICY PROGRAM ARGUMENTS…`. Returns only if that fails.
pub(crate) fn confine(policy: &str, command: &[String]) -> Failure {
    let policy: Policy = match serde_json::from_str(policy) {
        Ok(policy) => policy,
        Err(error) => return Failure::usage(format!("the policy is not valid: {error}")),
    };
    let Some((program, arguments)) = command.split_first() else {
        return Failure::usage("no command was given");
    };
    let wrapper = match project::own_program() {
        Ok(wrapper) => wrapper,
        Err(error) => return error.into(),
    };
    let variables: Vec<_> = std::env::vars_os().collect();
    let confined = Confined { program, arguments, wrapper: &wrapper, variables: &variables };
    Failure::failed(enter_sandbox(&policy, &confined).to_string())
}

/// Passes connections of the listening socket on standard input on to a UNIX socket: `cliq forward SOCKET`.
pub(crate) fn forward(socket: &str) -> ExitCode {
    let served = std::io::stdin().as_fd().try_clone_to_owned().and_then(|listener| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(forward_to_socket(TcpListener::from(listener), socket.into()))
    });
    if served.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
