#![no_main]

use libfuzzer_sys::fuzz_target;
use cliq_a2a::{Call, Version};
fuzz_target!(|input: (bool, u8, &[u8])| {
    let (is_old, method, bytes) = input;
    let version = if is_old { Version::V0_3 } else { Version::V1_0 };
    let methods = ["SendMessage", "message/send", "GetTask", "tasks/get", "ListTasks", "CreateTaskPushNotificationConfig"];
    if let Ok(params) = serde_json::from_slice(bytes) {
        if let Err(error) = Call::parse(version, methods[usize::from(method) % methods.len()], &params) {
            assert!(error.to_json_rpc(version).to_string().len() < 40_000);
        }
    }
});
