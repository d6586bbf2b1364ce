//! The configuration that `cargo xtask serve` writes: this machine, this build, two principals. An ordinary
//! file of the gateway, so reading it teaches what a real one needs.

use std::{
    fs::{self, OpenOptions},
    io::{ErrorKind, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use sha2::{Digest as _, Sha256};

use crate::serve::BackEnd;

/// What goes into the file.
#[derive(Debug)]
pub(crate) struct DevConfig {
    /// Folder of everything that serving leaves behind.
    pub(crate) folder: PathBuf,
    /// The executor that was just built.
    pub(crate) executor: PathBuf,
    /// What it drives.
    pub(crate) back_end: BackEnd,
    /// TCP port on loopback.
    pub(crate) port: u16,
}

/// The files that were written.
#[derive(Debug)]
pub(crate) struct Written {
    /// For `maka-gateway --config`.
    pub(crate) config: PathBuf,
    /// The token of the principal `agent`, mode 0600.
    pub(crate) agent_token: PathBuf,
    /// The token of the principal `operator`, mode 0600.
    pub(crate) operator_token: PathBuf,
    /// Whether keys and points may be synthesised.
    pub(crate) synthetic_input: bool,
    state: PathBuf,
}

impl DevConfig {
    /// Writes everything, replacing the configuration of an earlier run and keeping its tokens, so that command
    /// lines in somebody's shell history go on working.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub(crate) fn write(&self) -> anyhow::Result<Written> {
        let state = self.folder.join("state");
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&state)
            .with_context(|| format!("cannot make {}", state.display()))?;
        let state = fs::canonicalize(&state)?;
        let folder = state
            .parent()
            .context("the state folder has a parent")?
            .to_owned();

        let agent_token = folder.join("agent.token");
        let operator_token = folder.join("operator.token");
        let agent = token_digest(&agent_token)?;
        let operator = token_digest(&operator_token)?;
        let executor = fs::canonicalize(&self.executor)?;
        let digest = sha256(&fs::read(&executor)?);
        // A desktop that exists for agents may take synthetic keys and points; a person's desktop may not.
        let synthetic_input = match self.back_end {
            BackEnd::Virtual => true,
            BackEnd::Linux | BackEnd::Wayland | BackEnd::Macos => false,
        };

        let text = format!(
            "\
# Written by `cargo xtask serve`; deploy/gateway.toml documents every key.
state_dir = {state}

[input]
synthetic = {synthetic_input}

[listen]
unix = {socket}
tcp = \"127.0.0.1:{port}\"

[[principals]]
name = \"agent\"
role = \"agent\"
token_sha256 = \"{agent}\"

[[principals]]
name = \"operator\"
role = \"operator\"
token_sha256 = \"{operator}\"

[executor]
path = {executor}
sha256 = \"{digest}\"
back_end = \"{back_end}\"

# The floor alone: it is embedded, always first, and cannot be left out.
[policy]
",
            state = quoted(&state)?,
            socket = quoted(&state.join("maka-gateway.sock"))?,
            port = self.port,
            executor = quoted(&executor)?,
            back_end = self.back_end.as_str(),
        );
        let config = folder.join("gateway.toml");
        fs::write(&config, text).with_context(|| format!("cannot write {}", config.display()))?;
        Ok(Written {
            config,
            agent_token,
            operator_token,
            synthetic_input,
            state,
        })
    }
}

impl Written {
    /// The TCP address that the gateway really bound, as it wrote it down.
    ///
    /// # Errors
    /// When the file is not there: the gateway is not up.
    pub(crate) fn address(&self) -> anyhow::Result<String> {
        let file = self.state.join("address");
        let text =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        Ok(text.trim().to_owned())
    }
}

/// The digest of the token in `file`, which is made when it is not there.
fn token_digest(file: &Path) -> anyhow::Result<String> {
    let token = match fs::read_to_string(file) {
        Ok(text) => text.trim().to_owned(),
        Err(error) if error.kind() == ErrorKind::NotFound => new_token(file)?,
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
    };
    Ok(sha256(token.as_bytes()))
}

/// 64 lower-case hex digits.
fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// 256 random bits, readable by this user alone from the first moment.
fn new_token(file: &Path) -> anyhow::Result<String> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).context("the system has no randomness")?;
    let token = hex(&bytes);
    let mut opened = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)
        .with_context(|| format!("cannot make {}", file.display()))?;
    writeln!(opened, "{token}")?;
    Ok(token)
}

/// A path as a TOML string.
fn quoted(path: &Path) -> anyhow::Result<String> {
    let text = path
        .to_str()
        .with_context(|| format!("{} is not UTF-8", path.display()))?;
    Ok(toml::Value::from(text).to_string())
}
