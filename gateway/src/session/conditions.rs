//! The conditions of an allow or of a release (spec policy §1.5): which of them can be met for which method, and what they
//! come to when admit and review are taken together.
//!
//! Pure. Carrying them out is the business of `core::meet`, which has the answer, and of the edge, which knows how long an
//! answer is. What cannot be met is refused before anything is sent; what turns out not to be possible for one answer (a
//! picture that cannot be decoded, an element without a place) takes the whole part away instead.
//!
//! A redaction is a pointer into the answer in its JSON form:
//!
//! | answer of | pointers |
//! | --- | --- |
//! | Snapshot, Dispatch | `/snapshot/target/title`, `/snapshot/target/appName`, `/snapshot/selectedText`, `/snapshot/elements/WHICH/FIELD` with WHICH `*` or `secure` and FIELD `title`, `label`, `value`, `placeholder` or `axIdentifier` (the menu's elements too), `/snapshot/image/secure`, `/snapshot/image/role/ROLE`, `/snapshot/image/rect/X/Y/WIDTH/HEIGHT` |
//! | CaptureScreen | `/image/rect/X/Y/WIDTH/HEIGHT` |
//! | ListApps | `/apps/*/name` |
//! | ListWindows | `/windows/*/title`, `/windows/*/appName` |
//! | LaunchApp | `/launched/name`, `/launched/windows/*/title` |
//!
//! Regions of a picture are in its pixels, or the places of elements; they are painted black before a byte leaves.

use maka_cu_protocol::method::Method;
use maka_policy_host::facts::Path;
use maka_policy_host::obligation::Obligation;

/// A part of an answer that is taken out of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Redaction {
    /// Title of the observed window.
    Title,
    /// Name of its application.
    AppName,
    /// The selected text.
    SelectedText,
    /// One text of elements.
    Elements(Which, Field),
    /// A part of the picture.
    Image(Region),
    /// Names of listed applications.
    AppNames,
    /// Titles of listed windows.
    WindowTitles,
    /// Names of the applications of listed windows.
    WindowAppNames,
    /// Name of the launched application.
    LaunchedName,
    /// Titles of its windows.
    LaunchedTitles,
}

/// Which elements.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Which {
    All,
    /// Fields for secrets.
    Secure,
}

/// A text of an element.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Field {
    Title,
    Label,
    Value,
    Placeholder,
    AxIdentifier,
}

/// A part of a picture.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Region {
    /// Where fields for secrets are.
    Secure,
    /// Where elements of this role are.
    Role(String),
    /// Pixels.
    Rect(PixelRect),
}

/// Pixels of a picture.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PixelRect {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// Which answer a redaction is of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Part {
    Snapshot,
    Screen,
    Apps,
    Windows,
    Launched,
    Nothing,
}

const fn part(method: Method) -> Part {
    match method {
        Method::Observe
        | Method::DispatchElement
        | Method::DispatchKey
        | Method::DispatchPoint
        | Method::HostDispatch
        | Method::HostSnapshot => Part::Snapshot,
        Method::ScreenCapture => Part::Screen,
        Method::AppsList => Part::Apps,
        Method::WindowList => Part::Windows,
        Method::AppsLaunch => Part::Launched,
        Method::HostHello
        | Method::SessionBegin
        | Method::SessionEnd
        | Method::PermissionsCheck
        | Method::CaptureStart
        | Method::CaptureNext
        | Method::CaptureStop => Part::Nothing,
    }
}

impl Redaction {
    /// What a pointer means in the answer of a method; nothing when it means nothing there.
    pub(crate) fn parse(method: Method, pointer: &str) -> Option<Self> {
        let parts: Vec<&str> = pointer.strip_prefix('/')?.split('/').collect();
        match (part(method), parts.as_slice()) {
            (Part::Snapshot, ["snapshot", rest @ ..]) => Self::of_snapshot(rest),
            (Part::Screen, ["image", "rect", rest @ ..]) => {
                rect(rest).map(|rect| Self::Image(Region::Rect(rect)))
            }
            (Part::Apps, ["apps", "*", "name"]) => Some(Self::AppNames),
            (Part::Windows, ["windows", "*", "title"]) => Some(Self::WindowTitles),
            (Part::Windows, ["windows", "*", "appName"]) => Some(Self::WindowAppNames),
            (Part::Launched, ["launched", "name"]) => Some(Self::LaunchedName),
            (Part::Launched, ["launched", "windows", "*", "title"]) => Some(Self::LaunchedTitles),
            _ => None,
        }
    }

    fn of_snapshot(parts: &[&str]) -> Option<Self> {
        Some(match parts {
            ["target", "title"] => Self::Title,
            ["target", "appName"] => Self::AppName,
            ["selectedText"] => Self::SelectedText,
            ["elements", which, field] => {
                let which = match *which {
                    "*" => Which::All,
                    "secure" => Which::Secure,
                    _ => return None,
                };
                let field = match *field {
                    "title" => Field::Title,
                    "label" => Field::Label,
                    "value" => Field::Value,
                    "placeholder" => Field::Placeholder,
                    "axIdentifier" => Field::AxIdentifier,
                    _ => return None,
                };
                Self::Elements(which, field)
            }
            ["image", "secure"] => Self::Image(Region::Secure),
            ["image", "role", role] if !role.is_empty() => {
                Self::Image(Region::Role((*role).to_owned()))
            }
            ["image", "rect", rest @ ..] => Self::Image(Region::Rect(rect(rest)?)),
            _ => return None,
        })
    }
}

fn rect(parts: &[&str]) -> Option<PixelRect> {
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<u32>().ok()).flatten()
    };
    let [x, y, width, height] = parts else {
        return None;
    };
    let rect = PixelRect {
        x: number(x)?,
        y: number(y)?,
        width: number(width)?,
        height: number(height)?,
    };
    (rect.width > 0 && rect.height > 0).then_some(rect)
}

/// Whether a condition can be met for a method. `only-paths` is the business of whoever plans the call.
pub(crate) fn can(method: Method, obligation: &Obligation) -> bool {
    match obligation {
        Obligation::Redact(pointer) => Redaction::parse(method, pointer).is_some(),
        // Where there is no picture, no frame and no path, there is nothing to leave out, to spend or to keep to.
        Obligation::DropImage
        | Obligation::MaxBytes(_)
        | Obligation::OnlyPaths(_)
        | Obligation::NoFollowUp
        | Obligation::MarkSensitive => true,
    }
}

/// The paths that are permitted, where that is a condition. Conditions are united, so there is one list at most.
pub(crate) fn only_paths(obligations: &[Obligation]) -> Option<&[Path]> {
    obligations.iter().find_map(|obligation| match obligation {
        Obligation::OnlyPaths(paths) => Some(paths.as_slice()),
        Obligation::Redact(_)
        | Obligation::DropImage
        | Obligation::MaxBytes(_)
        | Obligation::NoFollowUp
        | Obligation::MarkSensitive => None,
    })
}

/// What an answer is held to.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Conditions {
    pub(crate) redactions: Vec<Redaction>,
    pub(crate) drop_image: bool,
    pub(crate) max_bytes: Option<u64>,
    pub(crate) no_follow_up: bool,
}

impl Conditions {
    /// The conditions of admit and review together, each toward the stricter side.
    pub(crate) fn of<'a>(
        method: Method,
        obligations: impl IntoIterator<Item = &'a Obligation>,
    ) -> Self {
        let mut conditions = Self::default();
        for obligation in obligations {
            match obligation {
                Obligation::Redact(pointer) => {
                    conditions
                        .redactions
                        .extend(Redaction::parse(method, pointer));
                }
                Obligation::DropImage => conditions.drop_image = true,
                Obligation::MaxBytes(limit) => {
                    let least = conditions
                        .max_bytes
                        .map_or(*limit, |least| least.min(*limit));
                    conditions.max_bytes = Some(least);
                }
                Obligation::NoFollowUp => conditions.no_follow_up = true,
                // The one is checked where the answer is read, the other concerns the log alone.
                Obligation::OnlyPaths(_) | Obligation::MarkSensitive => {}
            }
        }
        conditions
    }

    /// Whether this redaction is among them.
    pub(crate) fn redacts(&self, redaction: &Redaction) -> bool {
        self.redactions.contains(redaction)
    }

    /// The parts of the picture to paint over.
    pub(crate) fn regions(&self) -> impl Iterator<Item = &Region> {
        self.redactions
            .iter()
            .filter_map(|redaction| match redaction {
                Redaction::Image(region) => Some(region),
                Redaction::Title
                | Redaction::AppName
                | Redaction::SelectedText
                | Redaction::Elements(..)
                | Redaction::AppNames
                | Redaction::WindowTitles
                | Redaction::WindowAppNames
                | Redaction::LaunchedName
                | Redaction::LaunchedTitles => None,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_mean_something_in_their_own_answer_alone() {
        let rows: &[(Method, &str, Option<Redaction>)] = &[
            (
                Method::Observe,
                "/snapshot/target/title",
                Some(Redaction::Title),
            ),
            (
                Method::HostDispatch,
                "/snapshot/elements/secure/value",
                Some(Redaction::Elements(Which::Secure, Field::Value)),
            ),
            (
                Method::DispatchKey,
                "/snapshot/image/role/AXTextField",
                Some(Redaction::Image(Region::Role("AXTextField".to_owned()))),
            ),
            (
                Method::ScreenCapture,
                "/image/rect/1/2/3/4",
                Some(Redaction::Image(Region::Rect(PixelRect {
                    x: 1,
                    y: 2,
                    width: 3,
                    height: 4,
                }))),
            ),
            (Method::AppsList, "/apps/*/name", Some(Redaction::AppNames)),
            (Method::AppsList, "/snapshot/target/title", None),
            (Method::ScreenCapture, "/image/secure", None),
            (Method::ScreenCapture, "/image/rect/1/2/3", None),
            (Method::ScreenCapture, "/image/rect/1/2/0/4", None),
            (Method::ScreenCapture, "/image/rect/+1/2/3/4", None),
            (Method::Observe, "/snapshot", None),
            (Method::Observe, "/snapshot/elements/3/value", None),
            (Method::Observe, "/snapshot/elements/*/digest", None),
            (Method::Observe, "snapshot/target/title", None),
        ];
        for (method, pointer, expected) in rows {
            assert_eq!(&Redaction::parse(*method, pointer), expected, "{pointer}");
            let obligation = Obligation::Redact((*pointer).to_owned());
            assert_eq!(can(*method, &obligation), expected.is_some(), "{pointer}");
        }
    }

    #[test]
    fn admit_and_review_are_taken_together() {
        let obligations = [
            Obligation::MaxBytes(9),
            Obligation::DropImage,
            Obligation::MaxBytes(7),
            Obligation::Redact("/snapshot/selectedText".to_owned()),
        ];
        let conditions = Conditions::of(Method::Observe, &obligations);
        assert_eq!(
            (conditions.drop_image, conditions.max_bytes),
            (true, Some(7))
        );
        assert!(conditions.redacts(&Redaction::SelectedText) && !conditions.no_follow_up);
        assert_eq!(conditions.regions().count(), 0);
    }
}
