//! Calls that the loop answers itself, without the process of the tools.

use cliq_coder::tools;
use cliq_protocol::{ToolCall, ToolResult, shorten};

use super::{ModelLoop, result};
use crate::llm::people::Request;
use crate::llm::skills;

/// Maximum number of images that a conversation shows to a model.
const MAX_IMAGES: usize = 24;

impl ModelLoop<'_> {
    /// Result of a call that no other process is needed for; `None` if the host runs it.
    pub(super) fn own_result(&mut self, call: &ToolCall) -> Option<ToolResult> {
        if let Some(text) = &call.invalid {
            let known: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
            let why = format!(
                "this call of `{}` cannot be read, and was not run: {}. Call a tool with a JSON object of arguments. The tools are: {}",
                shorten(&call.name, 60),
                shorten(text, 300),
                known.join(", ")
            );
            return Some(result(call, Err(why)));
        }
        if !self.tools.iter().any(|tool| tool.name == call.name) {
            let known: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
            let known = known.join(", ");
            return Some(result(call, Err(format!("there is no tool `{}`; there are: {known}", call.name))));
        }
        if let Some(outcome) = self.servers.call(call, self.result_limit) {
            return Some(result(call, outcome));
        }
        if call.name == skills::ACTIVATE {
            let read = self.skills.activate(&call.arguments, &self.workspace, &self.files_dir);
            return Some(result(call, read.map(|text| tools::cap(text, self.result_limit))));
        }
        if let Some(structure) =
            self.structure.as_ref().filter(|structure| structure.tool().name == call.name)
        {
            let taken = if self.state.do_answers_differ() {
                Err(format!("your reply has several calls of `{}` that differ: call it once", call.name))
            } else {
                structure.answer(&call.arguments).map(|_| "taken: your work ends here".to_owned())
            };
            if let Err(why) = &taken {
                self.refusal = Some(why.clone());
            }
            return Some(result(call, taken));
        }
        match call.name.as_str() {
            tools::READ_IMAGE => return Some(self.read_image(call)),
            tools::ASK_PERSON => {
                let outcome = self.ask_person(call);
                return Some(result(call, outcome));
            }
            _ => {}
        }
        let arguments = || serde_json::Value::Object(call.arguments.clone());
        let (message, said) = match call.name.as_str() {
            "report_progress" => (tools::progress_message(&arguments()), "reported"),
            "todo" => (tools::todo_message(&arguments()), "noted"),
            _ => return None,
        };
        if let Ok((message, _)) = &message {
            self.display.act(message);
        }
        Some(result(call, message.map(|(_, note)| format!("{said}{note}"))))
    }

    /// Result of a call that shows an image.
    fn read_image(&mut self, call: &ToolCall) -> ToolResult {
        let arguments = serde_json::Value::Object(call.arguments.clone());
        let (path, note) = match tools::image_path(&arguments) {
            Ok(read) => read,
            Err(why) => return result(call, Err(why)),
        };
        if self.images.len() >= MAX_IMAGES {
            return result(
                call,
                Err(format!("this conversation has {MAX_IMAGES} images, which is the most")),
            );
        }
        let kept = self.kept_images.read(&path);
        match kept {
            Ok(image) => {
                let text = format!("{path}: {}, {} bytes{note}", image.media_type, image.size());
                let images = vec![image.path.clone()];
                self.images.push(image);
                ToolResult { images, ..result(call, Ok(text)) }
            }
            Err(why) => result(call, Err(why)),
        }
    }

    /// Result of a call that asks a person. Waits for the answer.
    fn ask_person(&mut self, call: &ToolCall) -> Result<String, String> {
        let arguments = serde_json::Value::Object(call.arguments.clone());
        let (question, note) = tools::question(&arguments)?;
        let request = Request::of_call(&self.agent, &call.id, &question)?;
        let answer = self.people.wait_for(&call.id, &request).map_err(|error| error.to_string())?;
        let with_note = |text: String| format!("{text}{note}");
        Request::outcome(&answer).map(with_note).map_err(with_note)
    }

    /// Digests of the questions of calls without a result.
    pub(super) fn open_questions(&self) -> Vec<String> {
        let questions = self.state.open_calls().iter().filter(|call| self.is_question(call));
        let digest = |call: &ToolCall| {
            let (question, _) = tools::question(&serde_json::Value::Object(call.arguments.clone())).ok()?;
            Some(Request::of_call(&self.agent, &call.id, &question).ok()?.digest)
        };
        questions.filter_map(digest).collect()
    }

    /// Whether a call asks a person: its outcome is recorded, so that it can be made again.
    pub(super) fn is_question(&self, call: &ToolCall) -> bool {
        call.name == tools::ASK_PERSON && self.tools.iter().any(|tool| tool.name == call.name)
    }
}
