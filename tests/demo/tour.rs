//! The steps of the tour. Each prints what is tried, what came back, and why that matters.

use std::path::Path;

use integration_tests::{
    client::{self, Client, click, element, on_element, set_value},
    gateway::{GatewayProcess, PATIENCE},
};
use maka_proto::v1::{
    DispatchResult, Effect, LaunchAppRequest, ListSessionsRequest, Outcome, Snapshot, WindowRef,
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tonic::Status;
use tonic_health::pb::health_check_response::ServingStatus;

/// Why a step did not end as promised.
pub(crate) type Broken = String;

struct Tour<'a> {
    gateway: &'a GatewayProcess,
    agent: Client,
    session_id: String,
}

/// Takes the whole tour and leaves a picture at `picture`.
pub(crate) async fn run(gateway: &GatewayProcess, picture: &Path) -> Result<(), Broken> {
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let tour = Tour {
        gateway,
        agent,
        session_id,
    };
    let first = tour.allow(picture).await?;
    tour.deny().await?;
    tour.stale(&first).await?;
    tour.duplicate().await?;
    tour.cancel().await?;
    tour.crash().await
}

impl Tour<'_> {
    /// An action that the policy allows, and what can be known about it afterwards.
    async fn allow(&self, picture: &Path) -> Result<Snapshot, Broken> {
        step(
            "allow",
            "write a title into Notes, as an agent would: observe, act, look again",
        );
        let notes = self.observe("org.maka.Notes").await?;
        let title = element(&notes, "AXTextField", "Title");
        let result = self
            .agent
            .dispatch(on_element(
                &self.session_id,
                "demo-allow",
                &notes,
                title,
                set_value("Written by an agent"),
            ))
            .await
            .map_err(unexpected)?;
        ensure(result.outcome() == Outcome::Ok, "the write succeeds")?;
        ensure(
            result.effect() == Effect::Confirmed,
            "the write was read back",
        )?;
        say(&result);
        let fresh = result.snapshot.ok_or("a fresh snapshot is missing")?;
        let image = fresh
            .image
            .as_ref()
            .ok_or("the fresh snapshot has no image")?;
        let bytes = self
            .agent
            .read_image(&self.session_id, image)
            .await
            .map_err(unexpected)?;
        std::fs::write(picture, bytes).map_err(|error| error.to_string())?;
        println!("        a picture of the window was fetched and its hash checked");
        Ok(notes)
    }

    /// An action that the floor policy refuses before the executor hears of it.
    async fn deny(&self) -> Result<(), Broken> {
        step("deny", "write into the password field of Settings");
        let settings = self.observe("org.maka.Settings").await?;
        let password = element(&settings, "AXTextField", "Password");
        let refusal = self
            .agent
            .dispatch(on_element(
                &self.session_id,
                "demo-deny",
                &settings,
                password,
                set_value("hunter2"),
            ))
            .await;
        self.refused(refusal, "secure_field")
    }

    /// A frame that was used already cannot be acted on again.
    async fn stale(&self, spent: &Snapshot) -> Result<(), Broken> {
        step(
            "stale",
            "press Save in Notes, quoting the frame from before the write",
        );
        let save = element(spent, "AXButton", "Save");
        let refusal = self
            .agent
            .dispatch(on_element(
                &self.session_id,
                "demo-stale",
                spent,
                save,
                click(),
            ))
            .await;
        self.refused(refusal, "snapshot_spent")
    }

    /// A call that is repeated, for example after a lost connection, does nothing twice.
    async fn duplicate(&self) -> Result<(), Broken> {
        step(
            "duplicate",
            "press Save, then send the very same call again",
        );
        let notes = self.observe("org.maka.Notes").await?;
        let rows = count(&notes, "AXRow");
        let request = on_element(
            &self.session_id,
            "demo-duplicate",
            &notes,
            element(&notes, "AXButton", "Save"),
            click(),
        );
        let done = self
            .agent
            .dispatch(request.clone())
            .await
            .map_err(unexpected)?;
        ensure(
            done.outcome() == Outcome::Ok && !done.replayed,
            "the first call presses",
        )?;
        let again = self.agent.dispatch(request).await.map_err(unexpected)?;
        ensure(again.replayed, "the second call returns the stored outcome")?;
        let after = self.observe("org.maka.Notes").await?;
        ensure(
            count(&after, "AXRow") == rows + 1,
            "the list grew by one row",
        )?;
        say(&again);
        println!(
            "        the stored outcome came back; the list of notes grew by one row, not by two"
        );
        Ok(())
    }

    /// Dropping a call cancels it; what became of it can be asked for.
    async fn cancel(&self) -> Result<(), Broken> {
        step(
            "cancel",
            "press a button in a window that answers slowly, and hang up before it does",
        );
        let launched = self
            .agent
            .computer_use
            .clone()
            .launch_app(LaunchAppRequest {
                session_id: self.session_id.clone(),
                tool_call_id: "demo-launch".into(),
                app: "org.maka.Archive".into(),
                ..Default::default()
            })
            .await
            .map_err(unexpected)?
            .into_inner()
            .launched
            .ok_or("Archive did not start")?;
        let window = WindowRef {
            pid: launched.pid,
            window_id: launched.windows[0].window_id,
        };
        let archive = self
            .agent
            .snapshot_window(&self.session_id, window)
            .await
            .map_err(unexpected)?;
        let request = on_element(
            &self.session_id,
            "demo-cancel",
            &archive,
            element(&archive, "AXButton", "Archive all"),
            click(),
        );
        {
            let call = self.agent.dispatch(request.clone());
            tokio::pin!(call);
            tokio::select! {
                result = &mut call => return Err(format!("the slow call was over at once: {result:?}")),
                () = self.under_way() => {}
            }
            // `call` is dropped here: the connection says so to the gateway, the gateway to the executor.
        }
        let outcome = self.agent.dispatch(request).await.map_err(unexpected)?;
        ensure(outcome.replayed, "the outcome of the dropped call was kept")?;
        say(&outcome);
        println!(
            "        asked again with the same key, the gateway tells what became of the dropped call"
        );
        Ok(())
    }

    /// The executor is killed; the gateway starts another and the old frames are dead.
    async fn crash(&self) -> Result<(), Broken> {
        step(
            "crash",
            "observe Notes, then kill the executor with SIGKILL",
        );
        let notes = self.observe("org.maka.Notes").await?;
        let status = self
            .agent
            .computer_use
            .clone()
            .get_status(maka_proto::v1::GetStatusRequest {})
            .await
            .map_err(unexpected)?
            .into_inner();
        let pid = status
            .executor
            .as_ref()
            .map(|executor| executor.pid)
            .ok_or("no executor")?;
        let pid = i32::try_from(pid).map_err(|error| error.to_string())?;
        kill(Pid::from_raw(pid), Signal::SIGKILL).map_err(|error| error.to_string())?;
        self.recovered(status.generation).await?;
        println!(
            "        generation {} is gone, a new executor is ready",
            status.generation
        );
        let save = element(&notes, "AXButton", "Save");
        let refusal = self
            .agent
            .dispatch(on_element(
                &self.session_id,
                "demo-crash",
                &notes,
                save,
                click(),
            ))
            .await;
        self.refused(refusal, "snapshot_other_generation")?;
        self.observe("org.maka.Notes").await?;
        println!("        a new look works: the session goes on");
        Ok(())
    }

    async fn observe(&self, app_id: &str) -> Result<Snapshot, Broken> {
        self.agent
            .snapshot_app(&self.session_id, app_id)
            .await
            .map_err(unexpected)
    }

    /// Resolves once the gateway has a call of this session in its hands.
    async fn under_way(&self) {
        loop {
            let listed = self
                .agent
                .computer_use
                .clone()
                .list_sessions(ListSessionsRequest {})
                .await;
            let busy = listed.is_ok_and(|answer| {
                answer
                    .into_inner()
                    .sessions
                    .iter()
                    .any(|session| session.calls_in_flight > 0)
            });
            if busy {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }

    /// Waits until an executor of a later generation than `old` is ready.
    async fn recovered(&self, old: u64) -> Result<(), Broken> {
        let waited = async {
            loop {
                self.gateway.wait_for(ServingStatus::Serving).await;
                let answer = self
                    .agent
                    .computer_use
                    .clone()
                    .get_status(maka_proto::v1::GetStatusRequest {})
                    .await;
                if answer.is_ok_and(|status| status.get_ref().generation > old) {
                    return;
                }
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waited)
            .await
            .map_err(|_| "no new executor came".to_owned())
    }

    /// Checks and prints a refusal.
    fn refused(&self, answer: Result<DispatchResult, Status>, code: &str) -> Result<(), Broken> {
        let Err(status) = answer else {
            return Err(format!("the gateway did not refuse with `{code}`"));
        };
        let reason = client::reason(&status);
        ensure(
            reason == format!("policy.maka/{code}"),
            &format!("`{code}`, not `{reason}`"),
        )?;
        let decision = client::metadata(&status, "decision_id").unwrap_or_default();
        println!("        refused: {code}: {}", status.message());
        println!("        decision {decision}; the executor was not asked");
        Ok(())
    }
}

fn step(name: &str, what: &str) {
    println!("{name:>9}  {what}");
}

fn say(result: &DispatchResult) {
    println!(
        "        {} by {}, {}, decision {}",
        plain(result.outcome().as_str_name(), "OUTCOME_"),
        plain(result.path().as_str_name(), "PATH_"),
        plain(result.effect().as_str_name(), "EFFECT_"),
        result.decision_id
    );
    if let Some(error) = &result.error {
        println!("        {}: {}", error.code, error.sentence);
    }
}

/// The word behind the prefix that the contract's enums carry.
fn plain(name: &str, prefix: &str) -> String {
    name.trim_start_matches(prefix).to_lowercase()
}

fn ensure(holds: bool, what: &str) -> Result<(), Broken> {
    if holds {
        Ok(())
    } else {
        Err(format!("expected: {what}"))
    }
}

fn unexpected(status: Status) -> Broken {
    format!(
        "{} ({:?}, {})",
        client::reason(&status),
        status.code(),
        status.message()
    )
}

fn count(snapshot: &Snapshot, role: &str) -> usize {
    snapshot
        .elements
        .iter()
        .filter(|element| element.role == role)
        .count()
}
