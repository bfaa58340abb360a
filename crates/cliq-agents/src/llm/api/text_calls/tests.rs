use serde_json::json;

use super::*;

fn tools() -> Vec<ToolSpec> {
    let spec = |name: &str, properties: Value| ToolSpec {
        name: name.into(),
        description: String::new(),
        schema: json!({"type": "object", "properties": properties}),
    };
    vec![
        spec(
            "read_file",
            json!({"path": {"type": "string"}, "start_line": {"type": "integer"}, "all": {"type": "boolean"}}),
        ),
        spec("search", json!({"pattern": {"type": "string"}, "files": {"type": "array"}})),
        spec("list_files", json!({})),
    ]
}

/// Texts with one call of `read_file` with the path `a`, and the text that is left.
const FORMS: &[(&str, &str)] = &[
    (r#"{"name": "read_file", "arguments": {"path": "a"}}"#, ""),
    (r#"{"type": "function", "function": {"name": "read_file", "arguments": "{\"path\": \"a\"}"}}"#, ""),
    (r#"[{"name": "read_file", "parameters": {"path": "a"}}]"#, ""),
    // Hermes, Qwen.
    ("I look. <tool_call>{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}</tool_call>", "I look."),
    ("<tool_call>\n{'name': 'read_file', 'arguments': {'path': 'a'}}\n</tool_call>", ""),
    ("<tool_call>{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}", ""),
    ("<tools>\nx\n<tool_call>{\"read_file\": {\"path\": \"a\"}}</tool_call>", "<tools>\nx"),
    ("<function_call>{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}</function_call>", ""),
    ("<TOOLCALL>[{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}]</TOOLCALL> end", "end"),
    ("<tool_calls>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n</tool_calls>", ""),
    // Qwen3-Coder.
    (
        "I look.\n<tool_call>\n<function=read_file>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>",
        "I look.",
    ),
    ("<function=read_file>\n<parameter=path>a</parameter>\n</function>\n</tool_call>", ""),
    // Mistral.
    (r#"[TOOL_CALLS][{"name": "read_file", "arguments": {"path": "a"}}]"#, ""),
    (r#"[TOOL_CALLS]read_file[ARGS]{"path": "a"}"#, ""),
    (r#"[TOOL_CALLS]read_file[CALL_ID]123456789[ARGS]{"path": "a"}"#, ""),
    (r#"[TOOL_CALLS]read_file{"path": "a"}</s>"#, ""),
    ("[TOOL_REQUEST]{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}[END_TOOL_REQUEST]", ""),
    // Llama.
    (r#"<|python_tag|>{"name": "read_file", "parameters": {"path": "a"}}"#, ""),
    (r#"<|python_tag|>read_file.call(path="a")<|eom_id|>"#, ""),
    (r#"<function=read_file>{"path": "a"}</function>"#, ""),
    (r#"[read_file(path="a")]"#, ""),
    (r#"[read_file(path='a',)]"#, ""),
    // DeepSeek.
    (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n```json\n{\"path\": \"a\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        "",
    ),
    (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{\"path\": \"a\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        "",
    ),
    (
        "<|tool_calls_begin|><|tool_call_begin|>function<|tool_sep|>read_file\n{\"path\": \"a\"}<|tool_call_end|><|tool_calls_end|>",
        "",
    ),
    (
        "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"read_file\">\n<｜DSML｜parameter name=\"path\" string=\"true\">a</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
        "",
    ),
    // GLM.
    ("<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>", ""),
    // Kimi.
    (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>{\"path\": \"a\"}<|tool_call_end|><|tool_calls_section_end|>",
        "",
    ),
    // Granite, Phi, LFM, MiniMax, Anthropic.
    (r#"<|tool_call|>[{"name": "read_file", "arguments": {"path": "a"}}]"#, ""),
    (
        r#"<|tool_call|>[{"type": "function", "function": {"name": "read_file", "arguments": {"path": "a"}}}]<|/tool_call|>"#,
        "",
    ),
    (r#"<|tool_call_start|>[read_file(path="a")]<|tool_call_end|>I look."#, "I look."),
    (
        "<minimax:tool_call>\n<invoke name=\"read_file\">\n<parameter name=\"path\">a</parameter>\n</invoke>\n</minimax:tool_call>",
        "",
    ),
    (
        "<function_calls>\n<invoke name=\"read_file\">\n<parameter name=\"path\">a</parameter>\n</invoke>\n</function_calls>",
        "",
    ),
    // Command.
    (
        "Plan: I look.\nAction: ```json\n[{\"tool_name\": \"read_file\", \"parameters\": {\"path\": \"a\"}}]\n```",
        "Plan: I look.",
    ),
    (
        r#"<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "read_file", "parameters": {"path": "a"}}]<|END_ACTION|>"#,
        "",
    ),
    ("Thought: I look.\nAction: read_file\nAction Input: {\"path\": \"a\"}", "Thought: I look."),
    // Harmony.
    (
        "<|channel|>commentary to=functions.read_file <|constrain|>json<|message|>{\"path\": \"a\"}<|call|>",
        "",
    ),
    ("<|start|>assistant to=functions.read_file<|channel|>commentary json<|message|>{\"path\": \"a\"}", ""),
    // Fences.
    ("```json\n{\"name\": \"read_file\", \"parameters\": {\"path\": \"a\"}}\n```\n", ""),
    ("I look.\n```tool_code\nprint(read_file(path=\"a\"))\n```", "I look."),
    ("```xml\n<tool_call>{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}</tool_call>\n```", ""),
];

#[test]
fn calls_of_all_model_families_are_read() {
    for (text, rest) in FORMS {
        let found = find(text, &tools(), false).unwrap_or_else(|| panic!("{text}"));
        assert_eq!((found.calls.len(), found.text.as_str()), (1, *rest), "{text}: {found:?}");
        let call = &found.calls[0];
        assert_eq!((call.name.as_str(), &call.invalid), ("read_file", &None), "{text}: {call:?}");
        assert_eq!(Value::Object(call.arguments.clone()), json!({"path": "a"}), "{text}");
    }
}

#[test]
fn several_calls_are_read_in_their_order() {
    for text in [
        "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"x\"}}\n</tool_call>\nand\n<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"b\"}}\n</tool_call>",
        "[TOOL_CALLS]search[ARGS]{\"pattern\": \"x\"}[TOOL_CALLS]read_file[ARGS]{\"path\": \"b\"}",
        "[search(pattern=\"x\"), read_file(path=\"b\")]",
        "{\"name\": \"search\", \"arguments\": {\"pattern\": \"x\"}}\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"b\"}}",
        "<function=search><parameter=pattern>x</parameter></function>\n<function=read_file><parameter=path>b</parameter></function>",
        "<tool_call>search\n<arg_key>pattern</arg_key><arg_value>x</arg_value></tool_call><tool_call>read_file<arg_key>path</arg_key>\n<arg_value>b</arg_value></tool_call>",
        "```json\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"x\"}}\n```\n```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"b\"}}\n```",
    ] {
        let found = find(text, &tools(), false).unwrap_or_else(|| panic!("{text}"));
        let names: Vec<(&str, &Value)> = found
            .calls
            .iter()
            .filter_map(|call| Some((call.name.as_str(), call.arguments.values().next()?)))
            .collect();
        assert_eq!(names, [("search", &json!("x")), ("read_file", &json!("b"))], "{text}: {found:?}");
    }
}

#[test]
fn values_have_the_types_of_their_parameters() {
    let text = "<tool_call>\n<function=read_file>\n<parameter=path>\n12\n</parameter>\n<parameter=start_line>\n3\n</parameter>\n<parameter=all>\nTrue\n</parameter>\n</function>\n</tool_call>";
    let found = find(text, &tools(), false).expect("a call");
    assert_eq!(
        Value::Object(found.calls[0].arguments.clone()),
        json!({"path": "12", "start_line": 3, "all": true})
    );
    let text = "<function=search><parameter=pattern>a\n</function> \"b\"\n</parameter><parameter=files>[\"x\"]</parameter></function>";
    let found = find(text, &tools(), false).expect("a call");
    assert_eq!(
        Value::Object(found.calls[0].arguments.clone()),
        json!({"pattern": "a\n</function> \"b\"", "files": ["x"]})
    );
}

#[test]
fn calls_that_cannot_be_read_are_returned_as_invalid() {
    for (text, name) in [
        ("<tool_call>{\"name\": \"read_file\", \"arguments\":", "read_file"),
        (
            "I write.\n<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a}}\n</tool_call>",
            "read_file",
        ),
        ("<function=read_file>\n<parameter=path>\na", "read_file"),
        ("[TOOL_CALLS]nonsense", "unreadable_call"),
        ("<|python_tag|>import os", "unreadable_call"),
        ("{\"name\": \"read_file\", \"arguments\": {\"path\": \"half", "read_file"),
        ("[read_file(path=\"a\"", "read_file"),
        ("<｜tool▁calls▁begin｜>read", "unreadable_call"),
        ("Action: [{\"tool_name\": \"read_file\", ", "read_file"),
        ("<|channel|>commentary to=functions.search<|message|>{\"pattern\"", "search"),
        ("```tool_call\nread the file\n```", "unreadable_call"),
    ] {
        let found = find(text, &tools(), false).unwrap_or_else(|| panic!("{text}"));
        let calls: Vec<(&str, bool)> =
            found.calls.iter().map(|call| (call.name.as_str(), call.invalid.is_some())).collect();
        assert_eq!(calls, [(name, true)], "{text}: {found:?}");
    }
    // An unknown tool is a call: the model is told which tools there are.
    for text in [
        r#"{"name": "unknown", "arguments": {}}"#,
        "<tool_call>{\"name\": \"unknown\", \"arguments\": {}}</tool_call>",
        "<tool_call><function=unknown></function></tool_call>",
        "<|channel|>commentary to=functions.unknown<|message|>{}<|call|>",
    ] {
        let found = find(text, &tools(), false).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(found.calls[0].name, "unknown", "{text}");
    }
}

#[test]
fn other_text_is_left_alone() {
    for text in [
        "I read the file.",
        "```json\n{\"answer\": 42}\n```",
        "```json\n{\"name\": \"unknown\", \"arguments\": {}}\n```",
        "{\"name\": \"cliq\", \"version\": 1}",
        "[1, 2]",
        "[the docs](a.md)",
        "The mark `<tool_call>` starts a call, `[TOOL_CALLS]` too.",
        "```xml\n<tool_call>x</tool_call>\n```\nThat is the form.",
        "Action: call the customer.\nActions follow.",
        "a < b and c[0]",
    ] {
        assert_eq!(find(text, &tools(), false), None, "{text}");
    }
}

#[test]
fn a_fenced_call_beside_text_is_never_run_and_never_an_answer() {
    for text in [
        "Here is the configuration you asked for:\n```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n```",
        "I look.\n\n```\n{\"name\": \"read_file\", \"parameters\": {\"path\": \"a\"}}\n```\n",
        "As XML:\n```xml\n<tool_call>{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}</tool_call>\n```",
    ] {
        for was_told in [false, true] {
            let found = find(text, &tools(), was_told).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(
                (found.calls.len(), found.calls[0].invalid.as_deref()),
                (1, Some(BESIDE_TEXT)),
                "{text}"
            );
        }
    }
}

#[test]
fn an_example_is_not_run_and_the_model_is_told_once() {
    let text = "An example:\n```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n```\nThat is how it is called.";
    let found = find(text, &tools(), false).expect("an example");
    assert_eq!((found.calls[0].invalid.as_deref(), found.text.as_str()), (Some(EXAMPLE), text));
    assert_eq!(find(text, &tools(), true), None);
    let two = "```json\n{\"name\": \"read_file\", \"arguments\": {}}\n```\nand\n```sh\nls\n```\nend";
    assert_eq!(find(two, &tools(), false), None);
}

/// A quadratic search would not end within the time limit of a test.
#[test]
fn large_texts_take_linear_time() {
    for unit in [
        "<tool_call>",
        "<tool_call>{\"a\":",
        "<tool_call>{\"name\": \"search\", \"arguments\": {}}</tool_call>",
        "<function=search>",
        "<function=search><parameter=a>",
        "<invoke name=\"a\">",
        "[TOOL_CALLS]",
        "[TOOL_CALLS]a[ARGS]{",
        "<|channel|>commentary to=x ",
        "<|channel|>",
        "\nAction: [",
        "\nAction: search\n",
        "```json\n{\"name\": \"search\", \"arguments\": {}}\n```\n",
        "[search(",
        "[search(a=1)]",
        "{\"name\": \"search\", \"arguments\": {}}",
        "{\"name\":",
        "<｜tool▁calls▁begin｜>",
        "<arg_key>",
        "<tool_call>a<arg_key>",
    ] {
        let text = unit.repeat((1 << 19) / unit.len());
        if let Some(found) = find(&text, &tools(), false) {
            assert!(found.calls.len() <= text.len(), "{unit}");
        }
    }
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_read(parts in prop::collection::vec(any::<prop::sample::Index>(), 0..6), noise in "(?s)[<>\\[\\]{}()|\"':=`a-f\n▁｜]{0,30}", at in any::<prop::sample::Index>()) {
            let mut text = String::new();
            for part in parts {
                let (form, _) = part.get(FORMS);
                let mut cut = at.index(form.len() + 1);
                while !form.is_char_boundary(cut) { cut -= 1; }
                text.push_str(&form[..cut]);
                text.push_str(&noise);
            }
            if let Some(found) = find(&text, &tools(), false) {
                prop_assert!(!found.calls.is_empty());
                prop_assert!(found.calls.iter().all(|call| !call.name.is_empty() && call.name.len() <= 64));
            }
        }
    }
}
