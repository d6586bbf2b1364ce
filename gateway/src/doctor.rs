//! `doctor`: tries what the configuration names and says, for each thing that does not work, what to do.
//!
//! It starts the executor for real, in a folder of its own, because only a handshake proves that it works; and it
//! compiles every policy module. It changes nothing that a running gateway uses.

use std::{fmt, path::PathBuf};

use maka_cu_host::selection::{NoBackend, Selection};
use maka_policy_host::{engine::Engine, limits::Limits};
use serde::Serialize;

use crate::{
    config::{Config, listen::ListenConfig, principals::Credential, value::AbsolutePath},
    plane,
    principal::Role,
    serve::executor,
    state_dir::{StateDir, StateDirError},
    telemetry::Chain,
};

/// How one thing is.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It works.
    Ok,
    /// It works, and something about it deserves a thought.
    Note,
    /// It does not work, and the gateway does not without it.
    Bad,
}

/// What was found about one thing.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub subject: &'static str,
    /// How it is.
    pub verdict: Verdict,
    /// What was seen.
    pub seen: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// Everything that was found.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Report {
    /// In the order in which a start needs them.
    pub findings: Vec<Finding>,
}

impl Report {
    fn add(
        &mut self,
        subject: &'static str,
        verdict: Verdict,
        seen: impl Into<String>,
        advice: Option<&str>,
    ) {
        let advice = advice.map(str::to_owned);
        self.findings.push(Finding {
            subject,
            verdict,
            seen: seen.into(),
            advice,
        });
    }

    /// Whether a gateway with this configuration works.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.findings
            .iter()
            .all(|finding| finding.verdict != Verdict::Bad)
    }

    /// The report for programs.
    ///
    /// # Panics
    /// Never: the report holds strings only.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report holds strings only")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.findings.iter().enumerate() {
            let mark = match finding.verdict {
                Verdict::Ok => "ok  ",
                Verdict::Note => "note",
                Verdict::Bad => "BAD ",
            };
            let newline = if index == 0 { "" } else { "\n" };
            write!(
                formatter,
                "{newline}{mark}  {:<10} {}",
                finding.subject, finding.seen
            )?;
            if let Some(advice) = &finding.advice {
                write!(formatter, "\n      {:<10} {advice}", "")?;
            }
        }
        Ok(())
    }
}

/// Things about a configuration that are legal and deserve a thought.
#[must_use]
pub fn notices(config: &Config) -> Vec<&'static str> {
    let mut notices = Vec::new();
    if config.principals.0.is_empty() {
        notices.push("no principal is configured: nobody can call anything but health");
    }
    if config.policy.is_none() {
        notices.push("no [policy] section: every call about the desktop is refused; write `[policy]` for the floor alone");
    }
    if config.executor.is_none() {
        notices.push("no [executor] section: every call about the desktop is refused");
    }
    let own = nix::unistd::Uid::current().as_raw();
    let is_own = |credential: &Credential| *credential == Credential::UnixUser(own);
    let operator = config
        .principals
        .0
        .iter()
        .any(|principal| principal.role == Role::Operator);
    if operator
        && config
            .principals
            .0
            .iter()
            .any(|principal| is_own(&principal.credential))
    {
        notices.push(
            "programs on the desktop run as the gateway's own user: keep the operator's token where that user cannot read it",
        );
    }
    if config.dev {
        notices.push("dev = true: reflection answers without credentials");
    }
    notices
}

/// Looks at everything.
pub async fn examine(config: Config) -> Report {
    let mut report = Report::default();
    for notice in notices(&config) {
        report.add("config", Verdict::Note, notice, None);
    }
    state_dir(&config, &mut report);
    listeners(&config, &mut report);
    let config = policies(config, &mut report).await;
    executor(config, &mut report).await;
    report
}

fn state_dir(config: &Config, report: &mut Report) {
    let subject = "state_dir";
    match StateDir::hold(config.state_dir.as_path()) {
        Ok(held) => report.add(
            subject,
            Verdict::Ok,
            held.path().display().to_string(),
            None,
        ),
        Err(error @ StateDirError::InUse { .. }) => {
            report.add(
                subject,
                Verdict::Note,
                "a gateway runs with it now",
                Some(&error.to_string()),
            );
        }
        Err(error @ (StateDirError::Unusable { .. } | StateDirError::NotPrivate { .. })) => {
            report.add(subject, Verdict::Bad, Chain(&error).to_string(), None);
        }
    }
}

fn listeners(config: &Config, report: &mut Report) {
    let defaults = match &config.listen {
        ListenConfig::Default => " (by default)",
        ListenConfig::Named { .. } => "",
    };
    if let Some(address) = config.listen.tcp() {
        report.add(
            "listen",
            Verdict::Ok,
            format!("tcp {}{defaults}", address.0),
            None,
        );
    }
    if let Some(path) = config.socket_path() {
        // `sun_path` has 108 bytes on Linux and 104 on macOS, with the NUL.
        if path.as_os_str().len() > 100 {
            let advice = "name a shorter path in `listen.unix`, or a shorter `state_dir`";
            report.add(
                "listen",
                Verdict::Bad,
                "the socket's path is longer than a socket address",
                Some(advice),
            );
        } else {
            report.add(
                "listen",
                Verdict::Ok,
                format!("unix {}{defaults}", path.display()),
                None,
            );
        }
    }
}

async fn policies(config: Config, report: &mut Report) -> Config {
    let Some(section) = config.policy.clone() else {
        return config;
    };
    let state_dir = config.state_dir.as_path().to_owned();
    let loaded = tokio::task::spawn_blocking(move || {
        let engine = Engine::new(Limits::default()).map_err(|error| Chain(&error).to_string())?;
        let sets = plane::examine(engine, &section, &state_dir).map_err(|fault| fault.plainly())?;
        let names = sets.iter().map(|set| {
            let modules: Vec<_> = set
                .modules()
                .iter()
                .map(|module| format!("{} {}", module.name(), module.digest()))
                .collect();
            format!("{}: {}", set.name(), modules.join(", "))
        });
        Ok(names.collect::<Vec<_>>().join("; "))
    });
    match loaded
        .await
        .unwrap_or_else(|_| Err("loading panicked".to_owned()))
    {
        Ok(names) => report.add("policy", Verdict::Ok, names, None),
        Err(why) => {
            report.add(
                "policy",
                Verdict::Bad,
                why,
                Some("correct `path`, `sha256` or `settings` of the module"),
            );
        }
    }
    config
}

async fn executor(mut config: Config, report: &mut Report) {
    let subject = "executor";
    // A folder of its own: the executor of a running gateway keeps its images.
    let images: PathBuf = config
        .state_dir
        .as_path()
        .join(format!("doctor-{}", std::process::id()));
    let Some(section) = config.executor.as_mut() else {
        return;
    };
    section.image_dir = images
        .to_str()
        .and_then(|path| path.parse::<AbsolutePath>().ok());
    let service = match executor::select(&config) {
        Selection::MakaCu(service) => service,
        Selection::None(reason) => {
            report.add(
                subject,
                Verdict::Bad,
                reason.to_string(),
                Some(advice(reason)),
            );
            return;
        }
    };
    match service.ensure_started().await {
        Ok(negotiated) => {
            let identity = &negotiated.handshake.executor;
            let abilities = &negotiated.handshake.capabilities;
            let seen = format!(
                "{} {} drives {}: {} element, {} point and {} key actions",
                identity.name,
                identity.version,
                executor::back_end(&config),
                abilities.element_actions.len(),
                abilities.point_actions.len(),
                abilities.key_actions.len(),
            );
            report.add(subject, Verdict::Ok, seen, None);
        }
        Err(error) => {
            let hint = error.remedy().unwrap_or("run the executor's own `doctor`");
            report.add(subject, Verdict::Bad, Chain(&error).to_string(), Some(hint));
        }
    }
    service.dispose().await;
}

const fn advice(reason: NoBackend) -> &'static str {
    match reason {
        NoBackend::UnknownBackend | NoBackend::PlatformUnsupported => {
            "run the gateway on Linux or macOS"
        }
        NoBackend::BinaryPathMissing => "write `executor.path`",
        NoBackend::DigestMissing | NoBackend::DigestMalformed => {
            "write `executor.sha256`, as `sha256sum` prints it for the executor"
        }
        NoBackend::ConstructionFailed => "check the limits on processes and open files",
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn config(folder: &Path, rest: &str) -> Config {
        let text = format!("state_dir = \"{}\"\n{rest}", folder.display());
        Config::parse(Path::new("gateway.toml"), &text).unwrap()
    }

    async fn check(rest: &str, subject: &str, verdict: Verdict, says: &str) {
        let folder = tempfile::tempdir().unwrap();
        let report = examine(config(folder.path(), rest)).await;
        let text = report.to_string();
        let found = report.findings.iter().any(|finding| {
            let said = format!(
                "{} {}",
                finding.seen,
                finding.advice.as_deref().unwrap_or_default()
            );
            finding.subject == subject && finding.verdict == verdict && said.contains(says)
        });
        assert!(found, "{rest}: {text}");
        assert_eq!(report.is_well(), !text.contains("BAD"), "{text}");
        assert!(report.to_json().contains("\"findings\""));
    }

    #[tokio::test]
    async fn each_fault_says_what_to_do() {
        let digest = "0".repeat(64);
        check("", "config", Verdict::Note, "[policy]").await;
        check("", "state_dir", Verdict::Ok, "").await;
        check("[executor]\n", "executor", Verdict::Bad, "executor.path").await;
        check(
            "[executor]\npath = \"/x\"\n",
            "executor",
            Verdict::Bad,
            "executor.sha256",
        )
        .await;
        let missing =
            format!("[executor]\npath = \"/nonexistent/maka-cu\"\nsha256 = \"{digest}\"\n");
        check(&missing, "executor", Verdict::Bad, "Install the executor").await;
        let other = format!("[executor]\npath = \"/bin/true\"\nsha256 = \"{digest}\"\n");
        check(&other, "executor", Verdict::Bad, "pin").await;
        check("[policy]\n", "policy", Verdict::Ok, "maka-floor").await;
        let absent = format!(
            "[[policy.modules]]\nname = \"m\"\npath = \"/nonexistent\"\nsha256 = \"{digest}\"\n"
        );
        check(
            &absent,
            "policy",
            Verdict::Bad,
            "module `m`: the file of the policy cannot be read: No such file",
        )
        .await;
        let long = format!("[listen]\nunix = \"/{}\"\n", "x".repeat(120));
        check(&long, "listen", Verdict::Bad, "shorter").await;
    }
}
