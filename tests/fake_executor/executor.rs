//! Reading requests, following the script, writing answers.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use maka_cu_protocol::codec::{LineCodec, encode_line};
use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::rpc::{self, Incoming, Request, RequestId, RpcCode, RpcError};
use serde_json::{Value, json};

use crate::answers;
use crate::fault::Fault;
use crate::picture;
use crate::process::{die, quit, spawn_helper, swap_own_file, wait_for_ever};
use crate::script::{Script, Step};
use crate::storm::Storm;
use crate::wire_log::WireLog;
use crate::world::World;

/// Exit status after a version mismatch (EX_CONFIG).
const EX_CONFIG: i32 = 78;

/// Longest line accepted; far above what any host sends.
const LINE_LIMIT: usize = 64 * 1024 * 1024;

/// The running fake.
#[derive(Debug)]
pub(crate) struct Executor {
    pub(crate) script: Script,
    pub(crate) log: WireLog,
    world: Mutex<World>,
    /// Held for the length of one message, so that messages of several threads never mix.
    output: Mutex<()>,
    counts: Mutex<HashMap<String, u64>>,
    cancelled: Mutex<HashSet<i64>>,
    cancel_came: Condvar,
    storm: Option<Storm>,
}

impl Executor {
    pub(crate) fn new(script: Script, log: WireLog) -> Arc<Self> {
        Arc::new(Self {
            world: Mutex::new(World::new(&script.world)),
            storm: script
                .storm
                .clone()
                .map(|storm| Storm::new(storm, log.process())),
            script,
            log,
            output: Mutex::new(()),
            counts: Mutex::default(),
            cancelled: Mutex::default(),
            cancel_came: Condvar::new(),
        })
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads until the end of stdin.
    pub(crate) fn run(self: &Arc<Self>) {
        if self
            .script
            .at_start_of_process
            .is_none_or(|process| process == self.log.process())
        {
            Rig {
                executor: self,
                request: None,
                pieces: None,
                last: None,
            }
            .follow(&self.script.at_start);
        }
        // Unbuffered: what was not asked for stays in the pipe, where a host may count it.
        let mut input = Unbuffered(io::stdin());
        let mut codec = LineCodec::new(LINE_LIMIT);
        let mut chunk = vec![0; 64 * 1024];
        loop {
            match input.read(&mut chunk) {
                Ok(0) | Err(_) => break,
                Ok(count) => codec.push(&chunk[..count]),
            }
            while let Ok(Some(line)) = codec.next_line() {
                self.line(&line);
            }
        }
        self.log.event("end_of_input", Value::Null);
        if self.script.ignore_eof {
            wait_for_ever();
        }
        self.world().forget_everything();
    }

    fn line(self: &Arc<Self>, line: &[u8]) {
        self.log.received(line);
        match Incoming::parse(line) {
            Incoming::Request(request) => self.request(request),
            Incoming::Cancel(RequestId(id)) => {
                self.cancelled
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(id);
                self.cancel_came.notify_all();
            }
            Incoming::Ignored => {}
            Incoming::Invalid(id, error) => {
                self.write(&encode_line(&rpc::error_response(id, &error)), None)
            }
        }
    }

    fn request(self: &Arc<Self>, request: Request) {
        let nth = {
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            let count = counts.entry(request.method.clone()).or_default();
            *count += 1;
            *count
        };
        let rule = self
            .script
            .rule(&request.method, &request.params, nth, self.log.process());
        let (steps, is_inline) = match rule {
            Some(rule) => (rule.steps.clone(), rule.inline),
            None => match self.draw(&request) {
                Some(steps) => (steps, false),
                None => {
                    let message = self.encode(&request, self.default(&request));
                    return self.send(&message, None);
                }
            },
        };
        let executor = self.clone();
        let follow = move || {
            Rig {
                executor: &executor,
                request: Some(&request),
                pieces: None,
                last: None,
            }
            .follow(&steps)
        };
        if is_inline {
            follow();
        } else {
            thread::spawn(follow);
        }
    }

    fn default(&self, request: &Request) -> Result<Value, RpcError> {
        answers::answer(self, request.method()?, &request.params)
    }

    /// The steps of the fault that the storm has for this request.
    fn draw(&self, request: &Request) -> Option<Vec<Step>> {
        let fault = self.storm.as_ref()?.draw(&request.method)?;
        self.log.event(
            "fault",
            json!({
                "id": request.id.0,
                "fault": fault.name(),
                "honest": fault.is_honest() || (fault == Fault::PictureOutside && !wants_picture(request)),
                "method": request.method,
                "session": request.params.get("session"),
                "toolCallId": request.params.get("toolCallId"),
            }),
        );
        Some(fault.steps())
    }

    /// The whole line of an answer. A storm notes what it says, so that a witness can compare.
    fn encode(&self, request: &Request, outcome: Result<Value, RpcError>) -> Message {
        let ends = matches!(&outcome, Err(error) if error.code() == Some(RpcCode::ProtocolVersionMismatch));
        if self.storm.is_some()
            && (request.method.starts_with("dispatch.") || request.method == "apps.launch")
        {
            let said = match &outcome {
                Ok(result) => json!({ "ok": result["ok"], "outcome": result["outcome"] }),
                Err(error) => json!({ "error": error.number() }),
            };
            self.log.event(
                "reply",
                json!({
                    "id": request.id.0,
                    "session": request.params.get("session"),
                    "toolCallId": request.params.get("toolCallId"),
                    "said": said,
                }),
            );
        }
        let message = match outcome {
            Ok(result) => rpc::result_response(request.id, result),
            Err(error) => rpc::error_response(Some(request.id), &error),
        };
        Message {
            bytes: encode_line(&message),
            ends,
        }
    }

    fn send(&self, message: &Message, pieces: Option<usize>) {
        self.write(&message.bytes, pieces);
        if message.ends {
            quit(EX_CONFIG);
        }
    }

    /// Writes one message, in pieces if asked to.
    fn write(&self, bytes: &[u8], pieces: Option<usize>) {
        let _whole = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let mut output = Unbuffered(io::stdout());
        for piece in bytes.chunks(pieces.unwrap_or(usize::MAX).max(1)) {
            if output.write_all(piece).is_err() {
                // The host is gone or has stopped listening; the end of stdin says the rest.
                return;
            }
        }
    }

    fn wait_for_cancel(&self, RequestId(id): RequestId) {
        let mut cancelled = self
            .cancelled
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        while !cancelled.contains(&id) {
            cancelled = self
                .cancel_came
                .wait(cancelled)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Executor {
    /// Whether the request is cancelled before this time is over.
    fn is_cancelled_within(&self, RequestId(id): RequestId, wait: Duration) -> bool {
        let cancelled = self
            .cancelled
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (cancelled, _) = self
            .cancel_came
            .wait_timeout_while(cancelled, wait, |cancelled| !cancelled.contains(&id))
            .unwrap_or_else(PoisonError::into_inner);
        cancelled.contains(&id)
    }
}

/// An answer that can be written.
#[derive(Debug, Clone)]
struct Message {
    bytes: Vec<u8>,
    /// The process ends after it.
    ends: bool,
}

/// One rule being followed.
struct Rig<'a> {
    executor: &'a Arc<Executor>,
    request: Option<&'a Request>,
    pieces: Option<usize>,
    last: Option<Message>,
}

impl Rig<'_> {
    fn follow(mut self, steps: &[Step]) {
        for step in steps {
            if !self.step(step) {
                return;
            }
        }
    }

    /// Does one step; false ends the rule.
    fn step(&mut self, step: &Step) -> bool {
        match step {
            Step::Default => self.answer(|executor, request| executor.default(request)),
            Step::Patched { set, remove } => self.answer(|executor, request| {
                let mut result = executor.default(request)?;
                for (pointer, value) in set {
                    put(&mut result, pointer, value.clone());
                }
                for pointer in remove {
                    take_out(&mut result, pointer);
                }
                Ok(result)
            }),
            Step::Picture(lie) => self.answer(|executor, request| {
                let mut result = executor.default(request)?;
                picture::lie(*lie, &mut result);
                Ok(result)
            }),
            Step::Half => {
                if let Some(request) = self.request {
                    let message = self
                        .executor
                        .encode(request, self.executor.default(request));
                    self.write(&message.bytes[..message.bytes.len() / 2]);
                }
            }
            Step::Again => {
                if let Some(message) = &self.last {
                    self.executor.send(message, self.pieces);
                }
            }
            Step::OtherId(higher) => {
                if let Some(request) = self.request {
                    let result = self.executor.default(request);
                    let other = Request {
                        id: RequestId(request.id.0 + higher),
                        method: request.method.clone(),
                        params: request.params.clone(),
                    };
                    let message = self.executor.encode(&other, result);
                    self.write(&message.bytes);
                }
            }
            Step::Result(result) => self.answer(|_, _| Ok(result.clone())),
            Step::Error(error) => {
                let id = self.request.map(|request| request.id.0);
                let message = json!({ "jsonrpc": "2.0", "id": id, "error": error });
                self.write(&encode_line(&message));
            }
            Step::Refuse(code) => {
                let code = DomainCode::parse(code).expect("a script refuses with a domain code");
                self.answer(|_, request| {
                    Ok(answers::refusal(request.method()?, &request.params, code))
                });
            }
            Step::Raw(text) => {
                let id = self
                    .request
                    .map_or_else(|| "null".to_owned(), |request| request.id.to_string());
                self.write(text.replace("$ID", &id).as_bytes());
            }
            Step::RawBytes(bytes) => self.write(bytes),
            Step::Pieces(size) => self.pieces = Some(*size),
            Step::WaitForFile(path) => wait_for_file(path),
            Step::Pause(millis) => thread::sleep(Duration::from_millis(*millis)),
            Step::Touch(path) => {
                File::create(path).expect("a script touches a file that can be made");
            }
            Step::WaitForCancel => {
                if let Some(request) = self.request {
                    self.executor.wait_for_cancel(request.id);
                }
            }
            Step::DefaultUnlessCancelledWithin(millis) => {
                let wait = Duration::from_millis(*millis);
                self.answer(|executor, request| {
                    if executor.is_cancelled_within(request.id, wait) {
                        let params = &request.params;
                        let aborted = DomainCode::Aborted;
                        return Ok(answers::refusal(request.method()?, params, aborted));
                    }
                    executor.default(request)
                });
            }
            Step::Never => return false,
            Step::Exit(status) => quit(*status),
            Step::Die(signal) => die(*signal),
            Step::CloseStdout => close(io::stdout()),
            Step::CloseStdin => close(io::stdin()),
            Step::FloodStdout { line, count } => {
                let line = format!("{line}\n");
                for _ in 0..*count {
                    self.write(line.as_bytes());
                }
            }
            Step::FloodStdoutBytes(count) => {
                self.write(&vec![b'x'; usize::try_from(*count).unwrap_or(usize::MAX)])
            }
            Step::FloodStderr(count) => flood_stderr(*count),
            Step::Complain(line) => {
                // Nobody may be listening.
                io::stderr().write_all(format!("{line}\n").as_bytes()).ok();
            }
            Step::SpawnHelper => self.executor.log.event("helper", spawn_helper()),
            Step::SwapOwnFile => swap_own_file(),
        }
        true
    }

    fn answer(&mut self, outcome: impl FnOnce(&Executor, &Request) -> Result<Value, RpcError>) {
        if let Some(request) = self.request {
            let message = self
                .executor
                .encode(request, outcome(self.executor, request));
            self.executor.send(&message, self.pieces);
            self.last = Some(message);
        }
    }

    fn write(&self, bytes: &[u8]) {
        self.executor.write(bytes, self.pieces);
    }
}

/// Whether the answer to a dispatch holds a picture that could be a lie.
fn wants_picture(request: &Request) -> bool {
    request.params.pointer("/observeAfter/includeImage") == Some(&Value::Bool(true))
}

/// Sets the value at a JSON pointer, making objects on the way.
fn put(root: &mut Value, pointer: &str, value: Value) {
    let mut place = root;
    for key in pointer.split('/').skip(1) {
        place = match place {
            Value::Array(list) => key
                .parse()
                .ok()
                .and_then(|index: usize| list.get_mut(index))
                .expect("an existing index"),
            other => {
                if !other.is_object() {
                    *other = json!({});
                }
                &mut other[key]
            }
        };
    }
    *place = value;
}

fn take_out(root: &mut Value, pointer: &str) {
    if let Some((parent, key)) = pointer.rsplit_once('/')
        && let Some(Value::Object(parent)) = root.pointer_mut(parent)
    {
        parent.remove(key);
    }
}

/// Waits until the file exists. The test that makes it is the event; how often we look is of no importance.
fn wait_for_file(path: &Path) {
    while !path.exists() {
        thread::sleep(Duration::from_millis(1));
    }
}

fn flood_stderr(count: u64) {
    // 0xFF is no UTF-8 anywhere, and there is no newline.
    let chunk = [0xFF; 64 * 1024];
    let mut left = usize::try_from(count).unwrap_or(usize::MAX);
    let mut stderr = io::stderr();
    while left > 0 {
        let now = left.min(chunk.len());
        if stderr.write_all(&chunk[..now]).is_err() {
            return;
        }
        left -= now;
    }
}

/// Closes a standard stream for good.
fn close(stream: impl AsFd) {
    // Already closed is as good.
    nix::unistd::close(stream.as_fd().as_raw_fd()).ok();
}

/// A standard stream below the buffers of the standard library.
struct Unbuffered<S>(S);

impl<S: AsFd> Read for Unbuffered<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(nix::unistd::read(self.0.as_fd(), buffer)?)
    }
}

impl<S: AsFd> Write for Unbuffered<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(nix::unistd::write(self.0.as_fd(), bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
