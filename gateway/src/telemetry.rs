//! The gateway's own log on stderr.
//!
//! Events hold ids, method names, codes, durations, counts and digests. Nobody logs what a person typed or saw,
//! a token, a header value or a whole frame, at any level; types that carry such text print nothing of it.

use std::io::{self, IsTerminal as _};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::{
    filter::Targets, fmt, layer::SubscriberExt as _, registry, util::SubscriberInitExt as _,
};

use crate::config::telemetry::{Format, Level, TelemetryConfig};

/// Crates of this product; others are heard from `warn` on, unless everything is asked for.
const OURS: [&str; 4] = [
    "maka_gateway",
    "maka_cu_host",
    "maka_cu_protocol",
    "maka_policy_host",
];

/// Installs the subscriber for the process. A second call does nothing: tests start several gateways.
pub fn install(config: TelemetryConfig) {
    let level = filter(config.level);
    // At `trace` the libraries speak too: HTTP/2 frames show headers, which tonic and h2 mark or the layer below hides.
    let others = if config.level == Level::Trace {
        LevelFilter::DEBUG
    } else {
        level.min(LevelFilter::WARN)
    };
    let targets = Targets::new()
        .with_default(others)
        // h2 prints header values at debug, and an authorization header is one of them.
        .with_target("h2", level.min(LevelFilter::WARN))
        .with_target("hyper", level.min(LevelFilter::WARN))
        .with_targets(OURS.map(|target| (target, level)));
    let installed = match config.format {
        Format::Text => registry()
            .with(targets)
            .with(
                fmt::layer()
                    .with_writer(io::stderr)
                    .with_ansi(io::stderr().is_terminal()),
            )
            .try_init(),
        Format::Json => registry()
            .with(targets)
            .with(fmt::layer().json().with_writer(io::stderr))
            .try_init(),
    };
    if installed.is_err() {
        tracing::debug!("a subscriber is installed already");
    }
}

fn filter(level: Level) -> LevelFilter {
    match level {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
        Level::Trace => LevelFilter::TRACE,
    }
}

/// An error and all its causes on one line. Each layer's text tells that layer's story only.
#[derive(Debug)]
pub struct Chain<'a>(pub &'a dyn std::error::Error);

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(formatter, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
