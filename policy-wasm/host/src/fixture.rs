//! The fixture format `maka.policy.fixture/1`: calls with what a policy has to say about them.
//!
//! A file holds one or more YAML documents, each a case; the first carries the header. Everything but the hook, the
//! method and the expectation takes a default, so that a case names what it is about and nothing else. The module owns
//! the format and its defaults; which verdicts are right is up to whoever wrote the file.
//!
//! Steps of one case share a mirror: an allowed action spends the snapshot that it quotes, as a gateway spends it when
//! the action is sent, and is counted in the meter of the steps after it.
//!
//! **Invariant:** what is not understood is a mistake with its line and place, never skipped.

mod call;
mod expect;
mod fault;
mod field;
mod node;
mod rows;

use std::fmt;
use std::path::{Path, PathBuf};

use crate::facts::Action;
use crate::manifest::RuleRow;
use crate::trial::Facts;
use serde_json::Value;

use fault::Fault;
use field::Field;
use rows::MirrorRow;

pub use expect::{Decision, Expect};
pub use fault::Problem;

/// What the header says.
pub const SCHEMA: &str = "maka.policy.fixture/1";

/// The largest fixture file: less than the facts that a gateway judges, so that no fixture shows a verdict for which a
/// gateway would not even ask.
pub const FILE_BYTES: u64 = 192 << 10;
/// The most cases of one file.
const MAX_CASES: usize = 4_096;

/// A mistake in a fixture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixtureError {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1.
    pub line: usize,
    /// A JSON pointer into the document of that line; empty for the whole of it.
    pub pointer: String,
    /// What is wrong, and what to write instead.
    pub problem: Problem,
}

impl fmt::Display for FixtureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file.display(), self.line)?;
        if !self.pointer.is_empty() {
            write!(f, "at `{}`: ", plain(&self.pointer))?;
        }
        write!(f, "{}", self.problem)
    }
}

impl std::error::Error for FixtureError {}

/// One case.
#[derive(Debug, Clone)]
pub struct Case {
    /// The file it stands in.
    pub file: PathBuf,
    /// Its first line.
    pub line: usize,
    /// What it is called.
    pub name: String,
    /// The settings it is for; nothing means those of the command line.
    pub settings: Option<Value>,
    /// Its steps, at least one.
    pub steps: Vec<Step>,
    /// It was written as `steps`.
    pub is_sequence: bool,
    mirror: Vec<MirrorRow>,
}

/// One call with what has to come of it.
#[derive(Debug, Clone)]
pub struct Step {
    /// Its first line.
    pub line: usize,
    /// What has to come of it; not every command needs one.
    pub expect: Option<Expect>,
    facts: Facts,
}

/// The state that steps of one case share.
#[derive(Debug, Clone)]
pub struct Scene {
    mirror: Vec<MirrorRow>,
    actions: u32,
    denials: u32,
}

/// The facts of a step at its turn.
#[derive(Debug, Clone)]
pub struct Bound {
    /// What a policy is asked about.
    pub facts: Facts,
    /// An earlier step of the same fingerprint spent the snapshot.
    pub is_repeated: bool,
}

/// Reads the cases of a fixture file. Rules are named by the ids of this policy; `file` is only what mistakes name.
///
/// # Errors
///
/// At the first mistake in it.
pub fn read(file: &Path, bytes: &[u8], rules: &[RuleRow]) -> Result<Vec<Case>, FixtureError> {
    let located = |Fault {
                       line,
                       pointer,
                       problem,
                   }| FixtureError {
        file: file.to_owned(),
        line,
        pointer,
        problem,
    };
    let text =
        std::str::from_utf8(bytes).map_err(|_| located(Fault::new(1, "", Problem::Encoding)))?;
    parse(file, text, rules).map_err(located)
}

/// A text without control characters, so that what a file or a policy says cannot steer a terminal.
#[must_use]
pub fn plain(text: &str) -> String {
    let shown = text.chars().map(|char| {
        if char.is_control() || ('\u{200b}'..='\u{202f}').contains(&char) {
            '\u{fffd}'
        } else {
            char
        }
    });
    shown.collect()
}

fn parse(file: &Path, text: &str, rules: &[RuleRow]) -> Result<Vec<Case>, Fault> {
    let documents = node::parse(text)?;
    if documents.len() > MAX_CASES {
        return Err(Fault::new(documents[MAX_CASES].line, "", Problem::TooMany));
    }
    let mut cases = Vec::new();
    for (at, document) in documents.iter().enumerate() {
        let field = Field::root(document);
        let has_header = match field.member("schema")? {
            Some(header) if header.word() == Some(SCHEMA) => true,
            Some(header) => return Err(header.fault(Problem::Header)),
            None => false,
        };
        if at == 0 && !has_header {
            return Err(field.fault(Problem::Header));
        }
        cases.push(case(file, &field, rules)?);
    }
    if cases.is_empty() {
        return Err(Fault::new(1, "", Problem::Empty));
    }
    Ok(cases)
}

fn case(file: &Path, field: &Field<'_>, rules: &[RuleRow]) -> Result<Case, Fault> {
    let table = field.table(&[
        "schema", "name", "settings", "mirror", "call", "expect", "steps",
    ])?;
    let (steps, is_sequence) = match (table.get("call"), table.get("steps")) {
        (Some(_), None) => (vec![step(field.line(), &table, rules)?], false),
        (None, Some(steps)) if table.get("expect").is_none() => {
            let list = steps.list()?;
            if list.is_empty() {
                return Err(steps.fault(Problem::Shape));
            }
            let steps = list.iter().map(|field| {
                let table = field.table(&["call", "expect"])?;
                step(field.line(), &table, rules)
            });
            (steps.collect::<Result<_, _>>()?, true)
        }
        (Some(_) | None, Some(_)) | (None, None) => return Err(field.fault(Problem::Shape)),
    };
    Ok(Case {
        file: file.to_owned(),
        line: field.line(),
        name: table.need("name")?.text()?,
        settings: table.get("settings").map(|settings| settings.json()),
        steps,
        is_sequence,
        mirror: table.or("mirror", Vec::new(), rows::mirror)?,
    })
}

fn step(line: usize, table: &field::Table<'_>, rules: &[RuleRow]) -> Result<Step, Fault> {
    let facts = call::call(&table.need("call")?, rules)?;
    let expect = table
        .get("expect")
        .map(|field| expect::expect(&field, facts.hook(), rules))
        .transpose()?;
    Ok(Step {
        line,
        expect,
        facts,
    })
}

impl Case {
    /// What a step is called: the case, and the number of the step in a sequence.
    #[must_use]
    pub fn step_name(&self, at: usize) -> String {
        if self.is_sequence {
            format!("{} (step {})", self.name, at + 1)
        } else {
            self.name.clone()
        }
    }

    /// The state before the first step.
    #[must_use]
    pub fn scene(&self) -> Scene {
        Scene {
            mirror: self.mirror.clone(),
            actions: 0,
            denials: 0,
        }
    }
}

impl Scene {
    /// The facts of a step as they are now: with the rows that it quotes, and with what earlier steps did.
    #[must_use]
    pub fn bind(&self, step: &Step) -> Bound {
        let mut facts = step.facts.clone();
        let mut is_repeated = false;
        if let Facts::Dispatch(dispatch) = &mut facts {
            let quoted = &dispatch.claim.snapshot_id;
            if let Some(known) = self.mirror.iter().find(|known| known.row.id == *quoted) {
                dispatch.snapshot = known.row.clone();
                let token = dispatch.claim.element_token.as_ref();
                let element = known
                    .elements
                    .iter()
                    .find(|element| Some(&element.token) == token);
                match dispatch.action {
                    Action::Element(_) => dispatch.element = element.cloned(),
                    Action::Key(_) | Action::Text(_) => dispatch.focus = element.cloned(),
                    Action::Point(_)
                    | Action::Launch(_)
                    | Action::Observe(_)
                    | Action::Other(_) => {}
                }
                is_repeated = known.spent_by.as_ref() == Some(&dispatch.head.fingerprint);
            }
        }
        let meter = &mut facts.head_mut().meter;
        for (count, more) in [
            (&mut meter.actions_this_turn, self.actions),
            (&mut meter.actions_last_minute, self.actions),
            (&mut meter.denials_this_turn, self.denials),
        ] {
            *count = count.saturating_add(more);
        }
        Bound { facts, is_repeated }
    }

    /// Carries on after a step: an allowed action spends its snapshot, and both outcomes are counted.
    pub fn settle(&mut self, bound: &Bound, decision: Decision) {
        match decision {
            Decision::Allow => {}
            Decision::Deny | Decision::RequireApproval | Decision::Error => self.denials += 1,
            Decision::Release | Decision::Withhold | Decision::Quarantine => {}
        }
        let Facts::Dispatch(dispatch) = &bound.facts else {
            return;
        };
        let acts = match dispatch.action {
            Action::Element(_) | Action::Point(_) | Action::Key(_) | Action::Text(_) => true,
            Action::Launch(_) | Action::Observe(_) | Action::Other(_) => false,
        };
        if decision != Decision::Allow || !acts {
            return;
        }
        self.actions += 1;
        let quoted = &dispatch.claim.snapshot_id;
        if let Some(known) = self.mirror.iter_mut().find(|known| known.row.id == *quoted) {
            known.row.state = crate::facts::SnapshotState::Spent;
            known.spent_by = Some(dispatch.head.fingerprint.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rules() -> Vec<RuleRow> {
        vec![RuleRow {
            id: "a".to_owned(),
            doc: "A rule.".to_owned(),
        }]
    }

    fn check(text: &str) -> Result<Vec<Case>, String> {
        parse(Path::new("x.yaml"), text, &rules())
            .map_err(|fault| format!("{}:{}: {}", fault.line, fault.pointer, fault.problem))
    }

    const HEAD: &str = "schema: maka.policy.fixture/1\nname: x\n";

    #[test]
    fn defaults_make_a_short_case_whole() {
        let text = format!(
            "{HEAD}mirror: [{{id: s1, elements: [{{token: e, digest: d}}]}}]\ncall: {{hook: admit-dispatch, method: \
             dispatch.element, claim: {{snapshot: s1, element: e, element_digest: d}}}}\n"
        );
        let case = check(&text).unwrap().remove(0);
        let bound = case.scene().bind(&case.steps[0]);
        let Facts::Dispatch(facts) = bound.facts else {
            panic!("a dispatch")
        };
        assert_eq!(facts.head.caller.session, facts.snapshot.owner_session);
        assert_eq!(facts.head.authority.generation, facts.snapshot.generation);
        assert_eq!(facts.element.unwrap().actions, ["press"]);
        assert!(facts.focus.is_none());
        assert!(facts.head.approval.is_none());
    }

    #[test]
    fn mistakes_have_a_line_a_place_and_a_remedy() {
        let call = "call: {hook: admit-dispatch, method: observe}\n";
        let rows: &[(String, &str)] = &[
            (String::new(), "1:: the file has no case"),
            ("name: x\n".to_owned(), "1:: the file has no header"),
            (
                "schema: maka.policy.fixture/2\n".to_owned(),
                "1:/schema: the file has no header",
            ),
            (
                HEAD.to_owned(),
                "1:: a case has either `call` and `expect`, or `steps`",
            ),
            (
                format!("{HEAD}calls: 1\n"),
                "3:/calls: this key is not known here; known are schema, name",
            ),
            (
                format!("{HEAD}call: {{method: observe}}\n"),
                "3:/call: `hook` is missing",
            ),
            (
                format!("{HEAD}call: {{hook: admit, method: x}}\n"),
                "3:/call/hook: this has to be one of admit-dispatch",
            ),
            (
                format!("{HEAD}call: {{hook: admit-cdp, method: x, claim: {{}}}}\n"),
                "3:/call/claim: this key is not known",
            ),
            (format!("{HEAD}{call}steps: []\n"), "1:: a case has either"),
            (format!("{HEAD}steps: []\n"), "3:/steps: a case has either"),
            (
                format!("{HEAD}{call}mirror: [{{id: a}}, {{id: a}}]\n"),
                "4:/mirror/1: this id stands twice",
            ),
            (
                format!("{HEAD}{call}mirror: [{{id: 7}}]\n"),
                "4:/mirror/0/id: this has to be text; put it in quotes",
            ),
            (
                format!("{HEAD}{call}expect: {{decision: allow, rules: [b]}}\n"),
                "4:/expect/rules/0: the policy has no rule",
            ),
            (
                format!("{HEAD}{call}expect: {{decision: allow}}\n"),
                "4:/expect: `rules` is missing",
            ),
            (
                format!("{HEAD}{call}expect: {{decision: deny, rules: [a]}}\n"),
                "4:/expect: a decision that refuses has a `code`",
            ),
            (
                format!("{HEAD}{call}expect: {{decision: release, rules: [a]}}\n"),
                "4:/expect/decision: this has to be one of allow",
            ),
            (
                format!(
                    "{HEAD}{call}expect: {{decision: allow, rules: [a], obligations: [run-shell]}}\n"
                ),
                "4:/expect/obligations/0: this is not an obligation",
            ),
            (
                format!("{HEAD}{call}---\nname: y\ncall: 1\n"),
                "6:/call: this has to be a map",
            ),
        ];
        for (text, expected) in rows {
            let said = check(text).unwrap_err();
            assert!(said.starts_with(expected), "{text}\n{said}");
        }
    }

    #[test]
    fn an_allowed_action_spends_its_snapshot_and_is_counted() {
        let text = format!(
            "{HEAD}mirror: [{{id: s1}}]\nsteps:\n- call: {{hook: admit-dispatch, method: dispatch.element, claim: \
             {{snapshot: s1}}}}\n"
        );
        let case = check(&text).unwrap().remove(0);
        let mut scene = case.scene();
        let first = scene.bind(&case.steps[0]);
        assert!(!first.is_repeated);
        scene.settle(&first, Decision::Deny);
        let second = scene.bind(&case.steps[0]);
        assert_eq!(second.facts.head().meter.denials_this_turn, 1);
        scene.settle(&second, Decision::Allow);
        let third = scene.bind(&case.steps[0]);
        assert!(third.is_repeated);
        assert_eq!(third.facts.head().meter.actions_this_turn, 1);
    }

    /// A whole case to damage.
    const WHOLE: &str = "schema: maka.policy.fixture/1
name: whole
settings: {}
mirror:
  - {id: s1, state: spent, target: {pid: 42}, elements: [{token: e1, digest: 'd1', frame: {x: 1.5}}]}
call:
  hook: admit-dispatch
  method: dispatch.element
  action: {element: {kind: set_value, text: {plain: \"x\"}}}
  claim: {snapshot: s1, element: e1, element_digest: d1, tier: ax}
expect: {decision: deny, code: snapshot_spent, rules: [a], fuel_max: 10}
";

    proptest! {
        /// Whatever a file holds, reading it ends in cases or in a mistake with a line of that file.
        #[test]
        fn reading_ends_whatever_a_file_holds(text in "[ a-c:,\\[\\]{}'\"&*!|>%@#~0-9.\n\t\u{feff}\u{e9}-]{0,80}") {
            drop(check(&text));
            drop(check(&format!("{HEAD}{text}")));
            drop(check(&format!("{HEAD}call: {text}")));
        }

        #[test]
        fn reading_ends_whatever_is_damaged(at in 0..WHOLE.len(), with in "[ a:,\\[\\]{}'\"&*!|>\n\t-]{0,3}", cut in 0_usize..4) {
            let end = (at + cut).min(WHOLE.len());
            let text = format!("{}{with}{}", &WHOLE[..at], &WHOLE[end..]);
            match parse(Path::new("x.yaml"), &text, &rules()) {
                Ok(cases) => prop_assert!(!cases.is_empty()),
                Err(fault) => prop_assert!(fault.line <= text.lines().count() + 1, "{}", fault.line),
            }
        }
    }
}
