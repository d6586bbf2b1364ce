//! A host reduced to what a conformance test needs: it starts the real binary, writes lines, and reads answers by id.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use maka_cu_protocol::generic::{GenericSnapshotParams, read_generic_snapshot};
use maka_cu_protocol::ids::ToolCallId;
use maka_cu_protocol::json::Violation;
use maka_cu_protocol::method::Method;
use maka_cu_protocol::results;
use maka_cu_protocol::results::dispatch::{DispatchExpectation, read_dispatch};
use maka_cu_protocol::sets::{Path, Tier};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longest time to wait for anything; only a failing test ever waits that long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A running executor.
pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    stderr: Option<JoinHandle<String>>,
    answers: HashMap<i64, Value>,
    /// Answers with `id: null`.
    pub(crate) unaddressed: Vec<Value>,
    next_id: i64,
    /// The image directory.
    pub(crate) images: TempDir,
    /// The result of `host.hello`.
    pub(crate) handshake: Value,
    /// Whether the handshake lets the executor move the pointer.
    allow_global_pointer: bool,
}

impl Client {
    /// Starts `maka-cu` with these arguments and no handshake.
    pub(crate) fn spawn(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_maka-cu"));
        command.args(arguments);
        Self::spawn_command(command)
    }

    /// The same with nothing in the environment that leads to a desktop.
    pub(crate) fn spawn_without_desktop(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_maka-cu"));
        command.args(arguments).env_clear();
        Self::spawn_command(command)
    }

    fn spawn_command(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = sync_channel(1024);
        thread::spawn(move || {
            for line in stdout.lines() {
                // Anything that is not one JSON value per line breaks the contract for every test.
                let line = line.unwrap();
                let value =
                    serde_json::from_str(&line).expect("stdout carries protocol messages only");
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        let mut pipe = child.stderr.take().unwrap();
        let stderr = thread::spawn(move || {
            let mut text = String::new();
            pipe.read_to_string(&mut text).unwrap();
            text
        });
        Self {
            stdin: child.stdin.take(),
            child,
            lines,
            stderr: Some(stderr),
            answers: HashMap::new(),
            unaddressed: Vec::new(),
            next_id: 1,
            images: tempfile::tempdir().unwrap(),
            handshake: Value::Null,
            allow_global_pointer: false,
        }
    }

    /// Starts `maka-cu host` with these further arguments and shakes hands.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_maka-cu"));
        command.arg("host").args(arguments);
        Self::start_command(command)
    }

    /// The same with the permission to move the pointer.
    pub(crate) fn start_permitted(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_maka-cu"));
        command.arg("host").args(arguments).args(["--log", "trace"]);
        let mut client = Self::spawn_command(command);
        client.allow_global_pointer = true;
        client.handshake = client.hello();
        client
    }

    /// A bare `maka-cu host` from a command that carries the environment of a real desktop, and a handshake.
    pub(crate) fn start_on(command: Command) -> Self {
        Self::start_on_with(command, &[])
    }

    /// The same with further arguments.
    pub(crate) fn start_on_with(mut command: Command, arguments: &[&str]) -> Self {
        command.arg("host").args(arguments);
        Self::start_command(command)
    }

    fn start_command(mut command: Command) -> Self {
        command.args(["--log", "trace"]);
        let mut client = Self::spawn_command(command);
        client.handshake = client.hello();
        client
    }

    /// The ordinary handshake, which must succeed.
    pub(crate) fn hello(&mut self) -> Value {
        let params = self.hello_params();
        self.ok("host.hello", params)
    }

    /// Params of the ordinary handshake.
    pub(crate) fn hello_params(&self) -> Value {
        json!({
            "protocol": "maka.cu/2",
            "host": { "name": "contract", "version": "0" },
            "hostPid": std::process::id(),
            "imageDir": self.images.path(),
            "allowGlobalPointer": self.allow_global_pointer,
        })
    }

    /// Writes one raw line.
    pub(crate) fn write(&mut self, line: &[u8]) {
        self.write_raw(&[line, b"\n"].concat());
    }

    /// Writes bytes that need not be a line.
    pub(crate) fn write_raw(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    /// Writes this many bytes without a newline, as far as they are read.
    pub(crate) fn flood(&mut self, bytes: usize) {
        // The executor may stop reading before the end; that is its right.
        drop(self.stdin.as_mut().unwrap().write_all(&vec![b'x'; bytes]));
    }

    /// Sends a request and returns its id.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        self.write(
            json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
                .to_string()
                .as_bytes(),
        );
        id
    }

    /// Sends `$/cancel`.
    pub(crate) fn cancel(&mut self, id: i64) {
        let line = json!({ "jsonrpc": "2.0", "method": "$/cancel", "params": { "id": id } });
        self.write(line.to_string().as_bytes());
    }

    /// Waits for the whole answer to a request.
    pub(crate) fn wait(&mut self, id: i64) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(answer) = self.answers.remove(&id) {
                return answer;
            }
            match self
                .lines
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                Ok(answer) => self.file(answer),
                Err(RecvTimeoutError::Timeout) => panic!("no answer to request {id}"),
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("the executor ended without answering request {id}")
                }
            }
        }
    }

    /// Whether an answer to this request has arrived already.
    pub(crate) fn has_answer(&mut self, id: i64) -> bool {
        while let Ok(answer) = self.lines.try_recv() {
            self.file(answer);
        }
        self.answers.contains_key(&id)
    }

    fn file(&mut self, answer: Value) {
        match answer["id"].as_i64() {
            Some(id) => {
                assert_eq!(answer["jsonrpc"], "2.0");
                let earlier = self.answers.insert(id, answer);
                assert!(earlier.is_none(), "request {id} was answered twice");
            }
            None => self.unaddressed.push(answer),
        }
    }

    /// A request whose answer is a `result`, of either arm. Every such answer is held to the host's strict reading.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params.clone());
        let answer = self.wait(id);
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        let result = answer["result"].clone();
        if let Err(violation) = self.read_strictly(method, &params, &result) {
            panic!("{method}: {violation}: {result}");
        }
        result
    }

    fn read_strictly(&self, method: &str, params: &Value, result: &Value) -> Result<(), Violation> {
        let image_dir = self.images.path();
        match Method::parse(method) {
            Some(Method::HostHello) => results::read_hello(result).map(drop),
            Some(Method::SessionBegin) => results::read_session_begin(result).map(drop),
            Some(Method::SessionEnd) => results::read_session_end(result).map(drop),
            Some(Method::WindowList) => results::lists::read_window_list(result).map(drop),
            Some(Method::AppsList) => results::lists::read_app_list(result).map(drop),
            Some(Method::AppsLaunch) => results::read_launch(result).map(drop),
            Some(Method::PermissionsCheck) => results::read_permissions(result).map(drop),
            Some(Method::ScreenCapture) => {
                results::read_screen_capture(result, image_dir, None).map(drop)
            }
            Some(Method::Observe) => {
                let image = params["includeImage"] != false;
                let expected = results::ObserveExpectation {
                    image_dir,
                    image,
                    window: None,
                };
                results::read_observe(result, &expected).map(drop)
            }
            Some(Method::HostSnapshot) => {
                let params = GenericSnapshotParams::from_value(params).unwrap();
                read_generic_snapshot(result, &params, image_dir).map(drop)
            }
            Some(
                method @ (Method::DispatchElement
                | Method::DispatchKey
                | Method::DispatchPoint
                | Method::HostDispatch),
            ) => {
                // Only the generic method demands; a result is held to its demands.
                let generic = method == Method::HostDispatch;
                let demanded = |name: &str| params[name].as_str().filter(|_| generic);
                let tool_call_id =
                    ToolCallId::try_new(params["toolCallId"].as_str().unwrap()).unwrap();
                let expected = DispatchExpectation {
                    tool_call_id: &tool_call_id,
                    allow_global_pointer: self.allow_global_pointer,
                    pid: None,
                    image_dir,
                    tier: demanded("tier").and_then(Tier::parse),
                    path: demanded("path")
                        .and_then(Path::parse)
                        .filter(|path| *path != Path::None),
                };
                read_dispatch(result, &expected).map(drop)
            }
            Some(Method::CaptureStart | Method::CaptureNext | Method::CaptureStop) | None => Ok(()),
        }
    }

    /// A request that must be `ok: true`.
    pub(crate) fn ok(&mut self, method: &str, params: Value) -> Value {
        let result = self.call(method, params);
        assert_eq!(result["ok"], true, "{method}: {result}");
        result
    }

    /// A request that must be refused; gives the code.
    pub(crate) fn refused(&mut self, method: &str, params: Value) -> String {
        let result = self.call(method, params);
        assert_eq!(result["ok"], false, "{method}: {result}");
        result["error"]["code"].as_str().unwrap().to_owned()
    }

    /// A request that must be an RPC error; gives code and `data.field`.
    pub(crate) fn rpc_error(&mut self, method: &str, params: Value) -> (i64, Option<String>) {
        let id = self.send(method, params);
        let answer = self.wait(id);
        let error = &answer["error"];
        assert!(error.is_object(), "{method}: {answer}");
        (
            error["code"].as_i64().unwrap(),
            error["data"]["field"].as_str().map(str::to_owned),
        )
    }

    /// Asks until the condition holds.
    pub(crate) fn wait_until(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds(self) {
            assert!(Instant::now() < deadline, "not in time: {what}");
            // Not synchronisation: only keeps the question from using up the processor.
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Closes stdin.
    pub(crate) fn hang_up(&mut self) {
        self.stdin = None;
    }

    /// Bytes of memory that the executor has now.
    #[cfg(target_os = "linux")]
    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .unwrap();
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
        kilobytes * 1024
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        kill(
            Pid::from_raw(i32::try_from(self.child.id()).unwrap()),
            Signal::SIGTERM,
        )
        .unwrap();
    }

    /// Waits for the process to end by itself.
    pub(crate) fn exit_status(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            // The pipe has to be emptied, or the executor could not end.
            let gone = match self.lines.recv_timeout(Duration::from_millis(20)) {
                Ok(answer) => {
                    self.file(answer);
                    false
                }
                Err(RecvTimeoutError::Disconnected) => true,
                Err(RecvTimeoutError::Timeout) => false,
            };
            match self.child.try_wait().unwrap() {
                Some(status) if gone => return status,
                Some(_) | None => assert!(Instant::now() < deadline, "the executor does not end"),
            }
        }
    }

    /// Everything the executor wrote to stderr; only after it has ended.
    pub(crate) fn stderr(&mut self) -> String {
        self.stderr.take().unwrap().join().unwrap()
    }

    /// The names of the files in the image directory.
    pub(crate) fn image_files(&self) -> usize {
        std::fs::read_dir(self.images.path()).unwrap().count()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Both fail only when the process has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Whether a path lies inside the directory and is a plain file.
pub(crate) fn is_plain_file_inside(path: &str, directory: &std::path::Path) -> bool {
    let path = std::path::Path::new(path);
    path.is_absolute()
        && path.parent() == Some(directory)
        && std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
}
