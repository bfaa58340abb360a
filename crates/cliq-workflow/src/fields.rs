//! Every field of team.yml in one table: the reader checks against it, the JSON Schema is made from it, and a test
//! holds docs/team-yml.md against it.

use cliq_document::{Field, Type, may, must};
use cliq_protocol::{AgentTools, ConversationMode, Effort, Permissions, SkillSelection};

pub(crate) const PHASE_TYPES: &[&str] = &["standard", "gate", "hug", "exec", "pull", "push", "team"];
pub(crate) const SCOPES: &[&str] = &["workspace", "repo"];
pub(crate) const WORKSPACES: &[&str] = &["shared", "worktree"];
pub(crate) const ITEM_FAILURES: &[&str] = &["escalate", "continue"];
pub(crate) const FORMATS: &[&str] = &["auto", "raw"];
pub(crate) const OBJECT_TYPES: &[&str] = &["contacts", "companies", "deals", "notes"];
pub(crate) const VISIBILITIES: &[&str] = &["internal", "public"];
pub(crate) const MODES: &[&str] = &["create", "append", "replace"];

pub(crate) static TEAM: &[Field] = &[
    must("name", Type::Text, "The team's name, `@scope/name`, in quotes."),
    may("description", Type::Text, "What the team does, in a sentence."),
    may("version", Type::Text, "The team's version (semver)."),
    may("cliq_version", Type::Text, "Versions of cliq that can run it (semver range, such as `>=0.1.0`)."),
    may("tools", Type::Texts, "Programs that must be on the PATH."),
    may("tags", Type::Texts, "Words to find it by."),
    may("use_when", Type::Texts, "When to choose this team."),
    may("not_for", Type::Texts, "When not to."),
    may("inputs", Type::Objects(INPUT), "Values that a run is given."),
    may("outputs", Type::Objects(OUTPUT), "What a run delivers. Informs; nothing checks it."),
    may("agents", Type::ObjectMap(AGENT), "Agents that come with the team, by name."),
    may("mcp", Type::ObjectMap(MCP), "MCP servers for agents that are models behind an API, by name."),
    may(
        "budget",
        Type::Object(BUDGET),
        "The most that a run may use of language models; then a person is needed.",
    ),
    may("workflow", Type::Object(WORKFLOW), "The phases. Required, unless `phases` stands at the top."),
    may("phases", Type::Objects(PHASE), "The newer spelling of `workflow.phases`."),
    may("support", Type::Objects(PHASE), "The newer spelling of `workflow.support`."),
];

pub(crate) static WORKFLOW: &[Field] = &[
    must("phases", Type::Objects(PHASE), "The phases of the main flow."),
    may("support", Type::Objects(PHASE), "Phases that idle until a gate routes work to them."),
];

pub(crate) static INPUT: &[Field] = &[
    must("name", Type::Text, "Its name: letters, digits, `_`, `-`."),
    may("description", Type::Text, "What it is for."),
    may("required", Type::Bool, "Whether a run must be given it. Default true."),
    may("default", Type::Text, "Its value where a run is given none. Makes it optional."),
];

pub(crate) static OUTPUT: &[Field] =
    &[must("name", Type::Text, "Its name."), may("description", Type::Text, "What it is.")];

pub(crate) static AGENT: &[Field] = &[
    must("entry", Type::Text, "An executable, as a path within the team folder."),
    may("env", Type::Texts, "Environment variables that it needs."),
    may("sandbox", Type::WordOrObject(PROFILES, SANDBOX), "The least strict sandbox that it works in."),
];

pub(crate) static MCP: &[Field] = &[
    may(
        "command",
        Type::Text,
        "A program that speaks MCP on standard input and output. With a `/`: a path within the team folder.",
    ),
    may("args", Type::Texts, "Arguments of the program."),
    may("env", Type::Texts, "Environment variables that it keeps in its sandbox."),
    may("url", Type::Text, "A server with streamable HTTP, in place of a program."),
    may("timeout", Type::Duration, "The most time for one request. Default: 60s."),
];

pub(crate) static PHASE: &[Field] = &[
    must("name", Type::Text, "Its name: lower-case letters, digits, `-`, `_`; at most 64; no `--`."),
    must("type", Type::Word(PHASE_TYPES), "What it is."),
    may("depends_on", Type::Texts, "Phases that must be done before it starts. None makes it a root."),
    may("agent", Type::Text, "Who works: an agent of `agents`, an installed one or a built-in one."),
    may("role", Type::Text, "The role file is `roles/<role>.md` instead of `roles/<phase>.md`."),
    may("model", Type::Text, "The model, for agents that have several."),
    may(
        "effort",
        Type::Word(&Effort::WORDS),
        "How much a model behind an API thinks before it answers. Default: the setting `agents.NAME.effort`.",
    ),
    may(
        "temperature",
        Type::Number(0, 2),
        "Temperature of a model behind an API. Default: the setting `agents.NAME.temperature`.",
    ),
    may(
        "max_tokens",
        Type::Integer(1, i64::MAX),
        "The most tokens of a reply of a model behind an API. Default: the setting `agents.NAME.max_tokens`.",
    ),
    may(
        "extra_body",
        Type::Any,
        "A mapping: further fields of requests to a model behind an API, such as `top_k`, added to those of the setting `agents.NAME.extra_body`.",
    ),
    may(
        "outputs",
        Type::Object(PHASE_OUTPUTS),
        "What a phase of a model agent hands over. An answer that violates the schema is sent back once, and then the phase fails.",
    ),
    may(
        "agent_tools",
        Type::WordOrTexts(&AgentTools::WORDS),
        "Tools of an agent that is a model behind an API: `none`, `read`, `full` or names. Default: `full`, at gates `read`.",
    ),
    may(
        "skills",
        Type::WordOrTexts(&SkillSelection::WORDS),
        "Skills that a model behind an API may read: `all`, `none` or names. Default: `all`.",
    ),
    may(
        "permissions",
        Type::WordOrTexts(&Permissions::WORDS),
        "Answers to an agent of the kind `acp` that asks for permission: `allow`, `edits`, `ask` (people), `deny`, or kinds of tool calls. Default: `allow` in a sandbox, otherwise `edits`.",
    ),
    may(
        "conversation",
        Type::Word(&ConversationMode::WORDS),
        "Conversation of a model agent whose work is sent back: `continue` the one in which it worked, or a `fresh` one. Default: `fresh`.",
    ),
    may("config", Type::TextMap, "Settings of the agent for this phase, such as `url` for `agent: a2a`."),
    may("action", Type::Text, "What a connector does, such as `get_issue`."),
    may("commands", Type::Objects(COMMAND), "Shell commands. On gate, hug and exec phases."),
    may(
        "max_iterations",
        Type::Integer(1, 5),
        "How often a gate may evaluate. Default 3. On gate and hug phases.",
    ),
    may(
        "route_to",
        Type::Texts,
        "Phases that a gate may route to. Default: those upstream, and all support phases.",
    ),
    may(
        "rules",
        Type::TextMapOrObjects(RULE),
        "For `agent: rules`: where a failing command routes to, a phase or `ESCALATE`; or a list of conditions, the first of which that holds decides.",
    ),
    may("when", Type::Text, "Condition (CEL). The phase is skipped if it is false."),
    may(
        "for_each",
        Type::Text,
        "List (CEL): one activation for each item. On standard, exec, team and pull phases.",
    ),
    may("max_items", Type::Integer(1, 1000), "The longest list of `for_each`. Default 20."),
    may(
        "max_parallel",
        Type::Integer(1, 1000),
        "The most items of `for_each` at the same time. Default: no limit of its own.",
    ),
    may(
        "on_item_failure",
        Type::Word(ITEM_FAILURES),
        "`continue` goes on without an item that failed. Default `escalate`.",
    ),
    may(
        "workspace",
        Type::Word(WORKSPACES),
        "`worktree` gives each item of `for_each` a git worktree of its own; they are merged in order. Default `shared`.",
    ),
    may(
        "on_conflict",
        Type::Text,
        "The support phase that resolves a conflict of a merge: it changes each path, or confirms it with `git add`. Without it, a conflict escalates.",
    ),
    may("retry", Type::Object(RETRY), "Further attempts after a failure. Not on gates."),
    may(
        "inputs_files",
        Type::Texts,
        "Globs of files in the workspace that it reads: `cliq run --changed` runs it again if they differ.",
    ),
    may("review", Type::Object(REVIEW), "Who reviews, and what. Required on hug phases, and only there."),
    may("sources", Type::Objects(SOURCE), "What to fetch. On pull and connector phases."),
    may("targets", Type::Objects(TARGET), "What to publish. On push phases."),
    may("target_entries", Type::Objects(TARGET), "What to publish. On push and connector phases."),
    may(
        "team",
        Type::Text,
        "The team that a team phase runs: `@scope/name`, `@scope/name@RANGE`, a folder, or another source of a package. Required there.",
    ),
    may("inputs", Type::TextMap, "What a team phase gives its team."),
    may(
        "timeout",
        Type::Duration,
        "How long it may take. Default: settings `phase_timeout` or `gate_agent_timeout`.",
    ),
    may(
        "budget",
        Type::Object(BUDGET),
        "The most that its agent may use of a language model. On phases that an agent works in.",
    ),
    may(
        "sandbox",
        Type::WordOrObject(PROFILES, SANDBOX),
        "The least strict sandbox of its agent and commands. Not on pull, push and connector phases.",
    ),
    may("notify", Type::Object(NOTIFY_EVENTS), "Whom to tell when it completes, escalates or fails."),
];

pub(crate) static PHASE_OUTPUTS: &[Field] =
    &[must("schema", Type::Any, "JSON Schema of the data: a mapping, with `type: object`.")];

pub(crate) const PROFILES: &[&str] = &["off", "workspace", "strict"];

pub(crate) static SANDBOX: &[Field] = &[
    may("profile", Type::Word(PROFILES), "The profile. Default `workspace`."),
    may(
        "read",
        Type::Texts,
        "Paths that may be read too: absolute, below `~/`, or relative to the workspace.",
    ),
    may("write", Type::Texts, "Paths that may be read and written too."),
    may(
        "network",
        Type::TextOrTexts,
        "`all`, `none`, or a list of hosts such as `*.example.com`. Default `all`.",
    ),
    may("env", Type::Texts, "Environment variables that are kept."),
];

pub(crate) static BUDGET: &[Field] = &[
    may("tokens", Type::Integer(1, i64::MAX), "The most tokens, of input and output together."),
    may("usd", Type::Amount, "The most US dollars."),
];

pub(crate) static RULE: &[Field] = &[
    must("if", Type::Text, "Condition (CEL). `results.GATE` has the results of this evaluation."),
    must("to", Type::Text, "`PASS`, `ESCALATE` or the phase to route to."),
    may("reason", Type::Text, "The reason of the verdict."),
];

pub(crate) static RETRY: &[Field] = &[
    must("attempts", Type::Integer(1, 20), "Attempts altogether."),
    may(
        "delay",
        Type::Duration,
        "Time before the next attempt. Default: none. From a minute on, the run parks.",
    ),
    may(
        "backoff",
        Type::Text,
        "Factor of the delay from one attempt to the next, 1 to 10; `constant` is 1, `exponential` is 2. Default 1.",
    ),
    may("on", Type::Texts, "Failures that are retried: `timeout`, `error`, `exit`. Default: all."),
];

pub(crate) static COMMAND: &[Field] = &[
    must("name", Type::Text, "What it is called in results."),
    must("run", Type::Text, "The shell command. Exit status 0 passes."),
    may("if", Type::Text, "A shell test; where it is false the command is skipped."),
    may(
        "scope",
        Type::Word(SCOPES),
        "`repo` runs it in each git repository of the workspace. Default `workspace`.",
    ),
    may(
        "escalate_on_fail",
        Type::Bool,
        "Whether its failure ends an exec phase. Default true. Only on exec phases.",
    ),
    may("timeout", Type::Duration, "How long it may take. Default: what the phase may take."),
    may(
        "required",
        Type::Bool,
        "Whether a gate must not pass while it fails. Default false: the agent decides. Only on gate and hug phases.",
    ),
];

pub(crate) static REVIEW: &[Field] = &[
    must(
        "reviewer",
        Type::Any,
        "Who reviews: a name, a list of which one has to approve, or a group `{policy: any | all, members}`.",
    ),
    may("artifacts", Type::TextOrTexts, "Files, directories or globs to show."),
    may("timeout", Type::Duration, "How long to wait, from the making of the review. Default 24h."),
    may("remind_every", Type::Duration, "How often to remind reviewers who have not answered."),
    may(
        "inputs",
        Type::Any,
        "Fields that the reviewer fills in: a list of `{name, label, type, required, default, choices, help}`.",
    ),
];

pub(crate) static SOURCE: &[Field] = &[
    must(
        "name",
        Type::Text,
        "What it is kept as: lower-case letters, digits, `-`; on connectors also `.` and `_`.",
    ),
    may("url", Type::Text, "Where it is."),
    may("ref", Type::Text, "Where it is, in the connector's own terms."),
    may("format", Type::Word(FORMATS), "`raw` keeps it as it came. Default `auto`."),
    may("method", Type::Text, "The HTTP method (curl)."),
    may("headers", Type::TextMap, "HTTP headers (curl)."),
    may("body", Type::Text, "The HTTP body (curl)."),
    may("window", Type::Text, "The time span, such as `4h` (datadog)."),
    may("limit", Type::Integer(1, 100_000), "The most results of a search. Default 100."),
    may("object", Type::Word(OBJECT_TYPES), "What to search for (hubspot). Default `contacts`."),
    may("properties", Type::Texts, "Properties to fetch (hubspot)."),
    may("file", Type::Text, "A file to send along (mesh)."),
];

pub(crate) static TARGET: &[Field] = &[
    may("file", Type::Text, "The local file, inside the workspace."),
    may("to", Type::Text, "Where to publish it."),
    may("mode", Type::Word(MODES), "What to do where something is there already. Default `create`."),
    may("name", Type::Text, "What it is called there."),
    may("ref", Type::Text, "Where to, in the connector's own terms."),
    may("url", Type::Text, "Where to (curl)."),
    may("method", Type::Text, "The HTTP method (curl)."),
    may("headers", Type::TextMap, "HTTP headers (curl)."),
    may("title", Type::Text, "The page's title (confluence), or the file's name (gdrive)."),
    may("parent", Type::Text, "The id of the page that a new one is below (confluence)."),
    may(
        "visibility",
        Type::Word(VISIBILITIES),
        "Whether a comment is for customers too (zendesk). Default `internal`.",
    ),
];

pub(crate) static NOTIFY_EVENTS: &[Field] = &[
    may("on_complete", Type::Object(NOTIFY), "When the phase completes."),
    may("on_escalate", Type::Object(NOTIFY), "When it escalates, for any reason."),
    may(
        "on_fail",
        Type::Object(NOTIFY),
        "When its work fails: its agent or a command failed, died or took too long.",
    ),
];

pub(crate) static NOTIFY: &[Field] = &[
    must("agent", Type::Text, "Who delivers, such as `slack`."),
    may("channel", Type::Text, "Where to, in that agent's terms."),
    may("message", Type::Text, "What to say."),
];

/// Every object of team.yml with a title, outermost first: for the documents.
pub(crate) const OBJECTS: &[(&str, &[Field])] = &[
    ("team", TEAM),
    ("workflow", WORKFLOW),
    ("phase", PHASE),
    ("budget", BUDGET),
    ("sandbox", SANDBOX),
    ("command", COMMAND),
    ("rule", RULE),
    ("retry", RETRY),
    ("review", REVIEW),
    ("source", SOURCE),
    ("target", TARGET),
    ("notify", NOTIFY_EVENTS),
    ("notify event", NOTIFY),
    ("input", INPUT),
    ("output", OUTPUT),
    ("agent", AGENT),
    ("MCP server", MCP),
];
