//! Which sites a browser can be used on, and no scripts and files unless they are let in.
//!
//! It judges commands. A page can still load what it likes: a deployment that must confine that, too, needs a proxy or
//! resolver rules for the browser. A page that has gone elsewhere by itself can only be navigated back, and its answers
//! are withheld.

use maka_policy_sdk::contract::PageRow;
use maka_policy_sdk::prelude::*;

/// Commands that carry a script whatever its length is, or let scripts do more.
const SCRIPT: &[&str] = &[
    "Page.addScriptToEvaluateOnLoad",
    "Page.addScriptToEvaluateOnNewDocument",
    "Page.createIsolatedWorld",
    "Page.setBypassCSP",
    "Runtime.addBinding",
    "Runtime.callFunctionOn",
    "Runtime.compileScript",
    "Runtime.evaluate",
    "Runtime.runScript",
];

/// Commands that read or write files of the browser's machine, or choose where files go.
const FILE: &[&str] = &[
    "Browser.setDownloadBehavior",
    "DOM.getFileInfo",
    "DOM.setFileInputFiles",
    "Input.dispatchDragEvent",
    "Page.setDownloadBehavior",
    "Page.setInterceptFileChooserDialog",
];

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    domains: Vec<String>,
    max_script_bytes: u32,
}

impl Settings {
    fn lists(&self, host: &str) -> bool {
        self.domains
            .iter()
            .any(|domain| match domain.strip_prefix("*.") {
                Some(parent) => host
                    .strip_suffix(parent)
                    .is_some_and(|below| below.len() > 1 && below.ends_with('.')),
                None => domain == host,
            })
    }

    fn lists_url(&self, url: &UrlFact) -> bool {
        match url.scheme.as_str() {
            // A user name in front of a host is there to be taken for the host.
            "http" | "https" => !url.userinfo && self.lists(&url.host),
            "about" => url.host == "blank",
            _ => false,
        }
    }

    /// Whether the page shows a listed site. One without an origin shows nothing of any site.
    fn lists_page(&self, page: &PageRow) -> bool {
        match page.origin.split_once("://") {
            Some(("http" | "https", authority)) => self.lists(host_of(authority)),
            Some(_) => false,
            None => matches!(page.origin.as_str(), "" | "null" | "about:blank"),
        }
    }
}

/// The host of an origin's authority, without the port.
fn host_of(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        // What comes after the last colon of an IPv6 address is no port.
        Some((host, port)) if !port.ends_with(']') => host,
        Some(_) | None => authority,
    }
}

struct BrowserDomains;

impl Policy for BrowserDomains {
    type Settings = Settings;

    fn check(settings: &Settings) -> Result<(), Misfit> {
        for (at, domain) in settings.domains.iter().enumerate() {
            let host = domain.strip_prefix("*.").unwrap_or(domain);
            let is_host = !host.is_empty()
                && !host.starts_with('.')
                && host.bytes().all(|byte| {
                    byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-:[]".contains(&byte)
                });
            if !is_host {
                let pointer = format!("/domains/{at}");
                return Err(Misfit::at(pointer, "not_a_host_in_lower_case"));
            }
        }
        Ok(())
    }
}

impl AdmitCdp for BrowserDomains {
    fn admit_cdp(settings: &Settings, facts: &Cdp) -> Verdict {
        judge(|trail| {
            let method = facts.head.method.as_str();
            let has_files = FILE.contains(&method) || method.starts_with("FileSystem.");
            trail.require(rule!("file.none"), !has_files, code!("file_command"))?;

            let is_script = SCRIPT.contains(&method) || method.starts_with("Debugger.");
            let length = facts.script_length.unwrap_or(u32::from(is_script));
            let fits = length <= settings.max_script_bytes;
            trail.require(rule!("script.length"), fits, code!("script_too_long"))?;

            // Addresses in a part that was cut off would not be seen.
            let all_listed =
                facts.params_complete && facts.urls.iter().all(|url| settings.lists_url(url));
            trail.require(rule!("url.listed"), all_listed, code!("url_not_listed"))?;

            let Some(page) = &facts.page else {
                return Ok(());
            };
            let leaves = method == "Page.navigate" && !facts.urls.is_empty();
            let listed = leaves || settings.lists_page(page);
            trail.require(rule!("page.listed"), listed, code!("page_not_listed"))
        })
    }
}

impl ReviewResult for BrowserDomains {
    fn review_result(settings: &Settings, facts: &Review) -> ReviewVerdict {
        review(|trail| {
            let (page, urls) = match &facts.subject {
                Subject::Dispatch(_) => return Ok(()),
                Subject::Cdp(result) => (result.page.as_ref(), &result.urls),
                Subject::Event(event) => (event.page.as_ref(), &event.urls),
            };
            let listed = page.is_none_or(|page| settings.lists_page(page))
                && urls.iter().all(|url| settings.lists_url(url));
            trail.require(rule!("answer.listed"), listed, code!("answer_not_listed"))
        })
    }
}

policy!(BrowserDomains: admit_cdp, review_result);

#[cfg(test)]
mod tests {
    use super::*;
    use maka_policy_sdk::contract::{CdpResult, Disposition};
    use maka_policy_sdk::{manifest, settings, testing};

    fn two_domains() -> Settings {
        Settings {
            domains: vec!["example.com".to_owned(), "*.example.org".to_owned()],
            max_script_bytes: 0,
        }
    }

    #[test]
    fn a_domain_is_a_host_or_everything_below_one() {
        for (host, listed) in [
            ("example.com", true),
            ("www.example.com", false),
            ("notexample.com", false),
            ("example.com.evil.net", false),
            ("example.com.", false),
            ("a.example.org", true),
            ("a.b.example.org", true),
            ("example.org", false),
            (".example.org", false),
            ("evilexample.org", false),
            ("", false),
        ] {
            assert_eq!(two_domains().lists(host), listed, "{host}");
        }
    }

    #[test]
    fn an_origin_is_taken_apart() {
        for (origin, listed) in [
            ("https://example.com", true),
            ("https://example.com:8443", true),
            ("http://a.example.org", true),
            ("https://evil.net", false),
            ("file://", false),
            ("chrome://settings", false),
            ("null", true),
            ("", true),
            ("example.com", false),
        ] {
            let mut page = testing::cdp("Page.reload", "{}").page.unwrap();
            page.origin = origin.to_owned();
            assert_eq!(two_domains().lists_page(&page), listed, "{origin}");
        }
        assert_eq!(host_of("[::1]:80"), "[::1]");
        assert_eq!(host_of("[::1]"), "[::1]");
    }

    #[test]
    fn the_answer_of_a_page_that_went_elsewhere_is_withheld() {
        let mut page = testing::cdp("Page.reload", "{}").page.unwrap();
        page.origin = "https://evil.net".to_owned();
        let facts = Review {
            head: testing::head("Page.reload"),
            admitted_rules: Vec::new(),
            subject: Subject::Cdp(CdpResult {
                ok: true,
                bytes: 2,
                urls: Vec::new(),
                page: Some(page),
            }),
        };
        let verdict = BrowserDomains::review_result(&two_domains(), &facts);
        assert_eq!(
            verdict.disposition,
            Disposition::Withhold("answer_not_listed".to_owned())
        );
    }

    #[test]
    fn domains_are_written_in_one_way() {
        for bad in [
            "",
            "*.",
            "Example.com",
            "https://example.com",
            "example.com/",
            "*",
            "a.*.b",
            ".com",
        ] {
            let settings = Settings {
                domains: vec![bad.to_owned()],
                max_script_bytes: 0,
            };
            assert!(BrowserDomains::check(&settings).is_err(), "{bad}");
        }
        assert!(BrowserDomains::check(&two_domains()).is_ok());
    }

    #[test]
    fn the_schema_has_the_same_defaults() {
        let written: Settings = settings::parse(&testing::schema_defaults(manifest!())).unwrap();
        assert_eq!(written, Settings::default());
    }
}
