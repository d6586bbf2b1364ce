//! Pages of `ListApps` (field report F10): a desktop runs a hundred programs, and an agent rarely wants all of them.
//!
//! A page begins after the application that the page before ended with, in the order of application id and pid. So no
//! application comes twice, whatever starts and ends between two calls.

use maka_cu_protocol::results::lists::AppEntry;

use super::decode::violations::Violations;

/// Longest token that can be ours: an id and a pid.
const MAX_TOKEN_BYTES: usize = 512;

/// What a caller wants of the list.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct AppPage {
    /// At most so many; nothing: all.
    size: Option<usize>,
    /// Those after this one.
    after: Option<(String, u32)>,
    /// Those with windows alone.
    with_windows: bool,
}

impl AppPage {
    /// Reads the fields of a request.
    pub(super) fn decode(
        violations: &mut Violations,
        page_size: u32,
        page_token: &str,
        with_windows: bool,
    ) -> Option<Self> {
        let after = if page_token.is_empty() {
            None
        } else {
            match read_token(page_token) {
                Some(after) => Some(after),
                None => {
                    return violations.refuse("page_token", "must be a `next_page_token` or empty");
                }
            }
        };
        Some(Self {
            size: (page_size > 0).then(|| usize::try_from(page_size).unwrap_or(usize::MAX)),
            after,
            with_windows,
        })
    }

    /// The page of a list, and the token of the next one; empty when this is the last.
    pub(super) fn of(&self, mut apps: Vec<AppEntry>) -> (Vec<AppEntry>, String) {
        apps.retain(|app| app.window_count > 0 || !self.with_windows);
        apps.sort_by(|one, other| key(one).cmp(&key(other)));
        if let Some((app_id, pid)) = &self.after {
            apps.retain(|app| key(app) > (app_id, *pid));
        }
        let Some(size) = self.size.filter(|size| *size < apps.len()) else {
            return (apps, String::new());
        };
        apps.truncate(size);
        let next = apps.last().map(token).unwrap_or_default();
        (apps, next)
    }
}

fn key(app: &AppEntry) -> (&str, u32) {
    (app.app_id.as_str(), app.pid)
}

fn token(app: &AppEntry) -> String {
    format!("{}.{}", app.pid, app.app_id.as_str())
}

fn read_token(token: &str) -> Option<(String, u32)> {
    if token.len() > MAX_TOKEN_BYTES {
        return None;
    }
    let (pid, app_id) = token.split_once('.')?;
    Some((app_id.to_owned(), pid.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use maka_cu_protocol::ids::AppId;

    use super::*;

    fn app(number: u32) -> AppEntry {
        AppEntry {
            app_id: AppId::try_new(format!("org.example.App{}", number % 7)).unwrap(),
            pid: number,
            name: None,
            window_count: number % 3,
            running: None,
        }
    }

    fn page(size: u32, token: &str, with_windows: bool) -> AppPage {
        AppPage::decode(&mut Violations::default(), size, token, with_windows).unwrap()
    }

    /// F10: a thousand applications in pages: each once, also when some start and end between the calls.
    #[test]
    fn pages_have_no_gaps_and_no_duplicates() {
        let all: Vec<_> = (1..=1000).rev().map(app).collect();
        for with_windows in [false, true] {
            let (mut seen, mut token) = (Vec::new(), String::new());
            loop {
                let (apps, next) = page(64, &token, with_windows).of(all.clone());
                assert!(apps.len() <= 64);
                seen.extend(apps.iter().map(|app| app.pid));
                if next.is_empty() {
                    break;
                }
                token = next;
            }
            let mut expected: Vec<_> = all
                .iter()
                .filter(|app| app.window_count > 0 || !with_windows)
                .map(|app| app.pid)
                .collect();
            seen.sort_unstable();
            expected.sort_unstable();
            assert_eq!(seen, expected);
        }
        let (_, token) = page(10, "", false).of(all.clone());
        let changed: Vec<_> = all.iter().filter(|app| app.pid % 2 == 0).cloned().collect();
        let (second, _) = page(10, &token, false).of(changed);
        let (first, _) = page(10, "", false).of(all);
        let twice = second.iter().filter(|app| first.contains(app)).count();
        assert_eq!((second.len(), twice), (10, 0));
    }

    #[test]
    fn a_token_of_somebody_else_is_refused() {
        for token in ["x", "7", "x.org", "-1.a", &"9.".repeat(400)] {
            let mut violations = Violations::default();
            assert_eq!(
                AppPage::decode(&mut violations, 0, token, false),
                None,
                "{token}"
            );
            assert!(violations.finish(None::<()>).is_err());
        }
    }
}
