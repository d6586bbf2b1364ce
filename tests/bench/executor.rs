//! The Linux back end itself, without a gateway: a tree against pyatspi's walk of the same window, a picture, memory.

use std::{
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use integration_tests::{
    binaries,
    desktop::{BIG_WINDOW, COVER, LinuxDesktop, PICTURE, VERY_BIG_WINDOW},
};
use maka_cu_host::environment::ChildEnvironment;
use maka_cu_host::{CallOptions, MakaCuService, Options};
use maka_cu_protocol::{
    ids::SessionId,
    method::Method,
    results::{Envelope, read_launch, read_session_begin},
};
use serde_json::{Value, json};

use crate::{
    distribution::{Distribution, Report},
    footprint,
};

const SAMPLES: usize = 20;
/// `snapshotsPerSession`: as many as may be live in one session.
const LIVE_SNAPSHOTS: usize = 8;

/// Needs the programs of a Linux desktop; says what is missing where they are not there.
pub(crate) async fn on_a_linux_desktop(report: &mut Report) {
    let desktop = match integration_tests::desktop::start() {
        Ok(desktop) => desktop,
        Err(why) => {
            report.left_out("the Linux back end by itself", &why);
            return;
        }
    };
    let home = tempfile::tempdir().expect("a folder");
    let mut options = Options::new(
        binaries::path("maka-cu"),
        home.path().join("state"),
        home.path().join("images"),
        env!("CARGO_PKG_VERSION"),
    );
    options.environment = ChildEnvironment::from_host(
        desktop
            .env()
            .into_iter()
            .map(|(name, value)| (name.into(), value.into())),
    );
    let service = Arc::new(MakaCuService::try_new(options).expect("the executable is there"));
    let bench = Bench { service };
    bench.walk(report, &desktop).await;
    bench.picture(report).await;
    bench.memory(report).await;
    bench.service.dispose().await;
    desktop.stop();
}

struct Bench {
    service: Arc<MakaCuService>,
}

impl Bench {
    /// The same window, walked by both in turn, so that what else runs on the machine disturbs both.
    async fn walk(&self, report: &mut Report, desktop: &LinuxDesktop) {
        let window = self.launch("walk", BIG_WINDOW).await;
        let mut ours = Distribution::default();
        let mut theirs = Distribution::default();
        for _ in 0..4 {
            for _ in 0..SAMPLES / 4 {
                ours.push(self.observe("walk", &window, false).await);
            }
            let output = Command::new("/usr/bin/python3")
                .arg(binaries::workspace_root().join("tests/python/pyatspi_walk.py"))
                .args(["Big window", "3"])
                .envs(desktop.env())
                .output()
                .expect("python runs");
            let text = String::from_utf8_lossy(&output.stdout);
            let walks = text
                .lines()
                .filter_map(|line| line.split(' ').nth(1)?.parse().ok());
            for milliseconds in walks {
                theirs.push(Duration::from_secs_f64(f64::max(milliseconds, 0.0) / 1e3));
            }
        }
        report.times("maka-cu: observe, 500 GTK elements, no picture", &ours);
        report.times("pyatspi: a walk of the same window", &theirs);
        let ratio = theirs.median().as_secs_f64() / ours.median().as_secs_f64();
        report.value("pyatspi over maka-cu", ratio, "x", ">= 3");
    }

    /// The part of an observation that its picture costs, bare and covered.
    async fn picture(&self, report: &mut Report) {
        let window = self.launch("picture", PICTURE).await;
        for covered in ["seen", "covered"] {
            if covered == "covered" {
                self.launch("picture", COVER).await;
            }
            let mut bare = Distribution::default();
            let mut whole = Distribution::default();
            for _ in 0..SAMPLES {
                bare.push(self.observe("picture", &window, false).await);
                whole.push(self.observe("picture", &window, true).await);
            }
            let cost = whole.median().saturating_sub(bare.median());
            report.value(
                &format!("maka-cu: 1280x800 to PNG, {covered}"),
                cost.as_secs_f64() * 1e3,
                "ms",
                "<= 40",
            );
        }
    }

    async fn memory(&self, report: &mut Report) {
        let window = self.launch("memory-0", VERY_BIG_WINDOW).await;
        for number in 0..LIVE_SNAPSHOTS {
            let session = format!("memory-{number}");
            if number > 0 {
                self.begin(&session).await;
            }
            self.observe(&session, &window, false).await;
        }
        let negotiated = self.service.negotiated().expect("it is ready");
        let pid = i32::try_from(negotiated.handshake.pid).expect("a process id");
        let rss = footprint::resident_megabytes(pid);
        report.value(
            "maka-cu: RSS with 8 live snapshots of 1,500",
            rss,
            "MB",
            "<= 60",
        );
    }

    async fn begin(&self, session: &str) {
        let params = json!({ "session": session, "captureScope": "window" });
        self.service
            .call_typed(
                Method::SessionBegin,
                params,
                of(session),
                read_session_begin,
            )
            .await
            .expect("answered")
            .value
            .into_result()
            .expect("begun");
    }

    /// Begins the session unless it is live, starts the program and gives the target of its first window.
    async fn launch(&self, session: &str, app: &str) -> Value {
        if app != COVER {
            self.begin(session).await;
        }
        let params = json!({ "session": session, "app": app, "waitForWindowMs": 20_000 });
        let launched = self
            .service
            .call_typed(Method::AppsLaunch, params, of(session), read_launch)
            .await
            .expect("answered")
            .value
            .into_result()
            .unwrap_or_else(|refusal| panic!("{app} did not start: {refusal}"));
        json!({ "kind": "window", "pid": launched.pid, "windowId": launched.windows[0].window_id })
    }

    async fn observe(&self, session: &str, target: &Value, image: bool) -> Duration {
        let params = json!({ "session": session, "target": target, "includeImage": image });
        let began = Instant::now();
        let answer = self
            .service
            .call(Method::Observe, params, of(session))
            .await;
        let took = began.elapsed();
        match answer.expect("answered").value {
            Envelope::Ok(_) => {}
            Envelope::Refused(refusal, _) => panic!("a look failed: {refusal}"),
        }
        took
    }
}

fn of(session: &str) -> CallOptions {
    CallOptions {
        session: Some(SessionId::try_new(session).expect("not empty")),
        ..CallOptions::default()
    }
}
