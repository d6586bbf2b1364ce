//! A judge on a log in a folder of its own, and facts in the form a gateway supplies.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::call::ExecutorCall;
use crate::digest::Digest;
use crate::engine::Engine;
use crate::facts::{Approving, Dispatch, DispatchFacts};
use crate::judge::{Judge, JudgeOptions};
use crate::limits::Limits;
use crate::log::{DecisionLog, LogOptions};
use crate::module::{LoadError, Mode, Module, ModuleSource};
use crate::permit::Permit;
use crate::set::{Floor, PolicySet};

/// The engine and the floor that most tests share: compiling is what takes long.
pub(super) fn shared() -> &'static (Engine, Floor) {
    static SHARED: OnceLock<(Engine, Floor)> = OnceLock::new();
    SHARED.get_or_init(|| {
        // A place per test thread, and the longest wall clock there is: these tests are about verdicts, not about a
        // full pool or a machine that is busy with other tests.
        let engine = Engine::new(Limits {
            pool: 128,
            pool_wait_ms: 1_000,
            wall_ms: 500,
            total_ms: 1_000,
            ..Limits::default()
        })
        .unwrap();
        let floor = Floor::load(&engine, &json!({})).unwrap();
        (engine, floor)
    })
}

/// A judge with what it writes to.
pub(super) struct Bench {
    pub(super) judge: Judge,
    pub(super) folder: TempDir,
}

impl Bench {
    /// A judge with the floor and these modules active for the tenant `default`.
    pub(super) fn new(more: Vec<Module>) -> Self {
        let bench = Self::idle(JudgeOptions::default());
        bench.activate(more);
        bench
    }

    /// A judge with nothing active.
    pub(super) fn idle(options: JudgeOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (log, _) =
            DecisionLog::open(&folder.path().join("log"), LogOptions::default()).unwrap();
        let judge = Judge::try_new(shared().0.clone(), Arc::new(log), options).unwrap();
        Self { judge, folder }
    }

    pub(super) fn activate(&self, more: Vec<Module>) {
        let (engine, floor) = shared();
        self.judge
            .activate(vec![
                PolicySet::new(engine, "default", floor, more).unwrap(),
            ])
            .unwrap();
    }

    /// Judges facts with an ordinary call.
    pub(super) fn admit(
        &self,
        facts: &Dispatch,
    ) -> Result<Permit<ExecutorCall>, crate::codes::Refusal> {
        self.judge.admit_dispatch(&given(facts), call(facts))
    }

    /// The code of the refusal, or nothing for an allow.
    pub(super) fn code(&self, facts: &Dispatch) -> Option<String> {
        self.admit(facts).err().map(|refusal| refusal.code)
    }

    /// The records in the log.
    pub(super) fn records(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("log")).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Ends the judge, after its monitors have said what they had to, and reads the records.
    pub(super) fn end(self) -> (Vec<Value>, TempDir) {
        let Self { judge, folder } = self;
        drop(judge);
        let text = std::fs::read_to_string(folder.path().join("log")).unwrap();
        let records = text.lines().map(|line| serde_json::from_str(line).unwrap());
        (records.collect(), folder)
    }

    /// The last record.
    pub(super) fn last(&self) -> Value {
        self.records().pop().unwrap()
    }
}

/// The gateway's part of the facts.
pub(super) fn given(facts: &Dispatch) -> DispatchFacts {
    let facts = facts.clone();
    DispatchFacts {
        tool_call_id: facts.head.tool_call_id,
        caller: facts.head.caller,
        authority: facts.head.authority,
        meter: facts.head.meter,
        approval: facts.head.approval,
        approving: Approving::Unavailable,
        action: facts.action,
        claim: facts.claim,
        snapshot: facts.snapshot,
        element: facts.element,
        focus: facts.focus,
        spent_fingerprint: None,
        row_version: 5,
        request: Some(Digest::of(b"request")),
    }
}

/// A call whose method is that of the facts.
pub(super) fn call(facts: &Dispatch) -> ExecutorCall {
    let methods = [
        "dispatch.element",
        "dispatch.key",
        "dispatch.point",
        "host.dispatch",
        "apps.launch",
        "observe",
    ];
    let method = methods
        .into_iter()
        .find(|method| *method == facts.head.method)
        .unwrap_or("window.smash");
    ExecutorCall::new(
        method,
        &json!({"session": "s", "toolCallId": "c", "action": {"kind": "click"}}),
    )
    .unwrap()
}

/// Loads a component as the operator would.
pub(super) fn load(name: &str, bytes: Vec<u8>) -> Result<Module, LoadError> {
    load_with(name, bytes, json!({}), Mode::Enforce)
}

pub(super) fn load_with(
    name: &str,
    bytes: Vec<u8>,
    settings: Value,
    mode: Mode,
) -> Result<Module, LoadError> {
    let pin = Digest::of(&bytes);
    let source = ModuleSource {
        name: name.to_owned(),
        bytes: bytes.into(),
        pin,
        settings,
        mode,
        allowance: crate::limits::Allowance::default(),
    };
    Module::load(&shared().0, source)
}

/// A component that is committed beside the floor.
pub(super) fn prebuilt(name: &str) -> Vec<u8> {
    std::fs::read(format!(
        "{}/../prebuilt/{name}.wasm",
        env!("CARGO_MANIFEST_DIR")
    ))
    .unwrap()
}
