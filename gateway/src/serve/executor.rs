//! From the configuration to a supervised executor, or to the reason why there is none.

use std::{ffi::OsString, time::Duration};

use maka_cu_host::{
    Options,
    environment::ChildEnvironment,
    options::RestartPolicy,
    selection::{BackendRequest, Selection, select_backend},
};

use crate::config::{
    Config,
    executor::{BackEnd, ExecutorConfig, Restart},
};

/// Systems for which an executor exists.
const SUPPORTED: [&str; 2] = ["linux", "macos"];

/// Chooses the back end; starts nothing. Fails closed: without path and digest there is none.
#[must_use]
pub fn select(config: &Config) -> Selection {
    let executor = config.executor.as_ref();
    let path = executor.and_then(|executor| executor.path.as_ref());
    let request = BackendRequest {
        backend: None,
        platform: std::env::consts::OS.to_owned(),
        supported: SUPPORTED.map(str::to_owned).to_vec(),
        binary_path: path.map(|path| path.as_path().to_owned()),
        expected_digest: executor
            .and_then(|executor| executor.sha256)
            .map(|digest| digest.0.to_hex()),
    };
    select_backend(&request, |path, _digest| {
        let mut options = Options::new(
            path,
            config.state_dir.as_path(),
            config.image_dir(),
            env!("CARGO_PKG_VERSION"),
        );
        options.host_name = env!("CARGO_PKG_NAME").to_owned();
        options.allow_global_pointer = config.allow_global_pointer;
        if let Some(executor) = executor {
            supervise(&mut options, executor);
        }
        options
    })
}

fn supervise(options: &mut Options, executor: &ExecutorConfig) {
    options.executor_args = arguments(executor);
    let variables = executor
        .env
        .0
        .iter()
        .map(|(name, value)| (OsString::from(name.as_str()), value.clone()));
    options.environment = ChildEnvironment::from_host(variables);
    options.timeout = executor.timeout_ms.as_millis();
    options.handshake_timeout = executor.handshake_timeout_ms.as_millis();
    options.cancel_grace = executor.cancel_grace_ms.as_millis();
    options.restart = match executor.restart {
        Restart::Eager => RestartPolicy::Eager,
        Restart::OnDemand => RestartPolicy::OnDemand,
    };
    options.max_restart_attempts =
        u32::try_from(executor.max_restart_attempts.get()).unwrap_or(u32::MAX);
    options.stable_after = Duration::from_millis(executor.stable_after_ms.get());
}

/// What comes after `host` on the executor's command line.
fn arguments(executor: &ExecutorConfig) -> Vec<OsString> {
    let back_end = executor
        .back_end
        .map(|back_end| ["--back-end".into(), back_end.as_str().into()]);
    back_end
        .into_iter()
        .flatten()
        .chain(executor.args.0.iter().cloned())
        .collect()
}

/// The word for what drives the desktop: the configured back end, else the real desktop of this platform.
#[must_use]
pub fn back_end(config: &Config) -> &'static str {
    let configured = config
        .executor
        .as_ref()
        .and_then(|executor| executor.back_end);
    configured
        .or(BackEnd::of_platform())
        .map_or("none", BackEnd::as_str)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use maka_cu_host::selection::NoBackend;

    use super::*;

    async fn check(section: &str, expected: Result<&[&str], NoBackend>) {
        let text = format!("state_dir = \"/s\"\n{section}");
        let config = Config::parse(Path::new("gateway.toml"), &text).unwrap();
        match (select(&config), expected) {
            (Selection::MakaCu(service), Ok(arguments)) => {
                assert_eq!(service.options().executor_args, arguments, "{section}");
            }
            (Selection::None(reason), Err(expected)) => assert_eq!(reason, expected, "{section}"),
            (selection, expected) => {
                panic!("{section}: {} instead of {expected:?}", selection.id())
            }
        }
    }

    #[tokio::test]
    async fn only_a_pinned_executor_is_chosen() {
        let digest = "0".repeat(64);
        check("", Err(NoBackend::BinaryPathMissing)).await;
        check(
            "[executor]\nback_end = \"virtual\"\n",
            Err(NoBackend::BinaryPathMissing),
        )
        .await;
        check("[executor]\npath = \"/x\"\n", Err(NoBackend::DigestMissing)).await;
        let pinned = format!("[executor]\npath = \"/x\"\nsha256 = \"{digest}\"\n");
        check(&pinned, Ok(&[])).await;
        let named =
            format!("{pinned}back_end = \"virtual\"\nargs = [\"--desktop\", \"/d.toml\"]\n");
        check(
            &named,
            Ok(&["--back-end", "virtual", "--desktop", "/d.toml"]),
        )
        .await;
    }
}
