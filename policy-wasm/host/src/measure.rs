//! One pass over the facts that gives their size and a hash.
//!
//! The hash goes into the decision record, so that a capture of the facts can be matched to its decision without the
//! record holding any of them. Every field is preceded by its length, so that no two facts share a form.

use maka_floor::facts::{
    Action, Authority, Claim, Dispatch, ElementRow, Grant, Head, Path, Rect, SnapshotRow, Target,
    TextArgs, Tier,
};
use sha2::{Digest as _, Sha256};

use crate::digest::Digest;

/// Takes in fields.
#[derive(Default)]
pub(crate) struct Measure {
    hash: Sha256,
    bytes: u64,
}

/// Why facts cannot be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotFinite;

impl Measure {
    /// Takes in a text.
    pub(crate) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.hash.update(text.as_bytes());
        self.bytes += text.len() as u64;
    }

    /// Takes in a number.
    pub(crate) fn number(&mut self, number: u64) {
        self.hash.update(number.to_le_bytes());
        self.bytes += 8;
    }

    /// Takes in an optional text.
    pub(crate) fn optional(&mut self, text: Option<&str>) {
        self.number(u64::from(text.is_some()));
        self.text(text.unwrap_or_default());
    }

    /// The size and the hash.
    pub(crate) fn finish(self) -> (u64, Digest) {
        (self.bytes, Digest::from_bytes(self.hash.finalize().into()))
    }

    fn float(&mut self, number: f64) -> Result<(), NotFinite> {
        if !number.is_finite() {
            return Err(NotFinite);
        }
        self.number(number.to_bits());
        Ok(())
    }

    fn rect(&mut self, rect: Option<&Rect>) -> Result<(), NotFinite> {
        self.number(u64::from(rect.is_some()));
        if let Some(Rect {
            x,
            y,
            width,
            height,
        }) = rect
        {
            for number in [*x, *y, *width, *height] {
                self.float(number)?;
            }
        }
        Ok(())
    }

    fn texts(&mut self, texts: &[String]) {
        self.number(texts.len() as u64);
        for text in texts {
            self.text(text);
        }
    }

    fn route(&mut self, tier: Option<Tier>, path: Option<Path>) {
        self.optional(tier.map(Tier::as_str));
        self.optional(path.map(Path::as_str));
    }

    /// Takes in a target.
    pub(crate) fn target(&mut self, target: Option<&Target>) {
        self.number(u64::from(target.is_some()));
        if let Some(Target {
            pid,
            process_start,
            window_id,
            app_id,
            page,
        }) = target
        {
            self.number(u64::from(*pid));
            self.number(*process_start);
            self.number(u64::from(*window_id));
            self.text(app_id);
            self.optional(page.as_deref());
        }
    }

    fn head(&mut self, head: &Head) {
        // The decision id, the time and the generation differ between two judgements of the same facts and are in the
        // record by themselves.
        let Head {
            decision_id: _,
            now_unix_ms: _,
            policy_generation: _,
            tool_call_id,
            method,
            fingerprint,
            caller,
            authority,
            meter,
            approval,
        } = head;
        for text in [tool_call_id, method, fingerprint] {
            self.text(text);
        }
        for text in [
            &caller.tenant,
            &caller.orchestrator,
            &caller.session,
            &caller.turn,
        ] {
            self.text(text);
        }
        self.texts(&caller.grants);
        let Authority {
            protocol,
            allow_global_pointer,
            compat_input,
            generation,
            permitted,
        } = authority;
        self.text(protocol);
        self.number(u64::from(*allow_global_pointer));
        self.number(u64::from(*compat_input));
        self.number(*generation);
        self.number(permitted.len() as u64);
        for row in permitted {
            self.text(row.tier.as_str());
            self.number(row.paths.len() as u64);
            for path in &row.paths {
                self.text(path.as_str());
            }
        }
        for count in [
            meter.actions_this_turn,
            meter.actions_last_minute,
            meter.denials_this_turn,
            meter.in_flight,
        ] {
            self.number(u64::from(count));
        }
        self.number(u64::from(approval.is_some()));
        if let Some(Grant {
            id,
            granted_by,
            expires_unix_ms,
            fingerprint,
            unused,
        }) = approval
        {
            for text in [id, granted_by, fingerprint] {
                self.text(text);
            }
            self.number(*expires_unix_ms);
            self.number(u64::from(*unused));
        }
    }

    fn text_args(&mut self, args: &TextArgs) {
        self.number(u64::from(args.length));
        self.text(&args.keyed_hash);
        self.optional(args.plain.as_deref());
    }

    fn action(&mut self, action: &Action) -> Result<(), NotFinite> {
        match action {
            Action::Element(args) => {
                self.number(0);
                self.text(&args.kind);
                self.number(u64::from(args.text.is_some()));
                if let Some(text) = &args.text {
                    self.text_args(text);
                }
            }
            Action::Point(args) => {
                self.number(1);
                self.float(args.x)?;
                self.float(args.y)?;
                self.rect(args.start.as_ref())?;
                self.text(&args.kind);
            }
            Action::Key(args) => {
                self.number(2);
                self.text(&args.key);
                self.texts(&args.modifiers);
            }
            Action::Text(args) => {
                self.number(3);
                self.text_args(args);
            }
            Action::Launch(name) => {
                self.number(4);
                self.text(name);
            }
            Action::Observe(name) => {
                self.number(5);
                self.text(name);
            }
            Action::Other(name) => {
                self.number(6);
                self.text(name);
            }
        }
        Ok(())
    }

    fn claim(&mut self, claim: &Claim) {
        self.text(&claim.snapshot_id);
        for text in [
            &claim.window_digest,
            &claim.element_token,
            &claim.element_digest,
        ] {
            self.optional(text.as_deref());
        }
        self.target(claim.target.as_ref());
        self.route(claim.tier, claim.path);
    }

    fn snapshot(&mut self, row: &SnapshotRow) {
        self.text(&row.id);
        self.text(row.state.as_str());
        self.text(&row.owner_session);
        for number in [
            row.generation,
            row.epoch,
            row.age_ms,
            u64::from(row.truncated),
        ] {
            self.number(number);
        }
        self.target(row.target.as_ref());
        self.text(&row.window_digest);
    }

    fn element(&mut self, row: Option<&ElementRow>) -> Result<(), NotFinite> {
        self.number(u64::from(row.is_some()));
        if let Some(row) = row {
            for text in [&row.token, &row.digest, &row.role] {
                self.text(text);
            }
            self.texts(&row.actions);
            self.number(u64::from(row.enabled));
            self.number(u64::from(row.secure));
            self.rect(row.frame.as_ref())?;
        }
        Ok(())
    }

    /// Takes in the facts of an executor call.
    pub(crate) fn dispatch(&mut self, facts: &Dispatch) -> Result<(), NotFinite> {
        self.head(&facts.head);
        self.action(&facts.action)?;
        self.claim(&facts.claim);
        self.snapshot(&facts.snapshot);
        self.element(facts.element.as_ref())?;
        self.element(facts.focus.as_ref())
    }
}
